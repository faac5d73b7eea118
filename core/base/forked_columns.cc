#include "core/base/forked_columns.h"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#define DYNHAC_HAS_FORK 1
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace dynhac {

#ifdef DYNHAC_HAS_FORK

namespace {

// Before every column, and at the end.
struct Head {
  enum Kind : uint32_t { kColumn, kNoMemory, kFailed };
  Kind kind;
  uint32_t type;  // of the alternatives of AnyColumn
  uint64_t bytes;
};

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// --- In the child.

void close_all_but(int kept) {
  DIR* folder = opendir("/dev/fd");
  if (folder == nullptr) return;
  Vec<int> open;
  while (const dirent* entry = readdir(folder)) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == '\0') open.push_back(static_cast<int>(number));
  }
  closedir(folder);
  for (const int file : open) {
    if (file != kept) ::close(file);
  }
}

// Handlers are code of the parent's. What is ignored there is ignored here too.
void set_signals(const sigset_t& before) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) != 0) continue;
    const bool ignored = (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
    const bool wanted = ignored || number == SIGINT || number == SIGPIPE || number == SIGXFSZ;
    action = {};
    action.sa_handler = wanted ? SIG_IGN : SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool send(int to, const void* data, size_t size) {
  const auto* at = static_cast<const std::byte*>(data);
  while (size > 0) {
    const ssize_t count = ::write(to, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;  // nobody reads any more
    at += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

void send_columns(int to, const std::vector<MakeColumn>& columns) {
  Workers alone(1);
  for (const MakeColumn& make : columns) {
    const AnyColumn column = make(alone);
    const bool sent = std::visit(
        [&](const auto& values) {
          const Head head{Head::kColumn, static_cast<uint32_t>(column.index()),
                          values.size() * sizeof(values[0])};
          return send(to, &head, sizeof head) && send(to, values.data(), head.bytes);
        },
        column);
    if (!sent) return;
  }
}

[[noreturn]] void run_child(int to, const std::vector<MakeColumn>& columns, pid_t parent,
                            const sigset_t& signals) {
  int status = 0;
  try {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
#else
    (void)parent;
#endif
    set_signals(signals);
    close_all_but(to);
    send_columns(to, columns);
  } catch (const std::bad_alloc&) {
    const Head head{Head::kNoMemory, 0, 0};
    send(to, &head, sizeof head);
    status = 1;
  } catch (...) {
    const Head head{Head::kFailed, 0, 0};
    send(to, &head, sizeof head);
    status = 1;
  }
  _exit(status);
}

template <size_t type = 0>
AnyColumn column_of(uint32_t wanted, uint64_t bytes) {
  if constexpr (type < std::variant_size_v<AnyColumn>) {
    if (type != wanted) return column_of<type + 1>(wanted, bytes);
    using Values = std::variant_alternative_t<type, AnyColumn>;
    return Values(bytes / sizeof(typename Values::value_type));
  } else {
    throw std::logic_error("no column has this type");
  }
}

}  // namespace

bool ForkedColumns::supported() {
  return true;
}

ForkedColumns::ForkedColumns(std::vector<MakeColumn> columns) {
  int ends[2];
  if (::pipe(ends) != 0) fail("pipe");
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
#ifdef F_SETPIPE_SZ
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);  // fewer switches between the processes
#endif
  // No handler of the parent's must run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid();
  const pid_t child = ::fork();
  if (child == 0) run_child(ends[1], columns, parent, before);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    errno = error;
    fail("fork");
  }
  child_ = child;
  pipe_ = ends[0];
}

void ForkedColumns::read(std::byte* to, size_t size, Poll* poll) {
  constexpr int kMilliseconds = 50;
  while (size > 0) {
    pollfd waited{pipe_, POLLIN, 0};
    const int ready = ::poll(&waited, 1, kMilliseconds);
    if (ready < 0 && errno != EINTR) fail("poll");
    if (ready <= 0) {
      if (poll != nullptr) poll->check();
      continue;
    }
    const ssize_t count = ::read(pipe_, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read");
    if (count == 0) {
      errno = ECHILD;
      fail("the process that copies the state has ended before its time");
    }
    to += count;
    size -= static_cast<size_t>(count);
  }
}

AnyColumn ForkedColumns::next(Poll* poll) {
  if (pipe_ < 0) throw std::logic_error("the columns have been closed");
  Head head;
  read(reinterpret_cast<std::byte*>(&head), sizeof head, poll);
  if (head.kind == Head::kNoMemory) throw std::bad_alloc();
  if (head.kind != Head::kColumn) throw std::runtime_error("a column of the state cannot be made");
  AnyColumn column = column_of(head.type, head.bytes);
  std::visit(
      [&](auto& values) { read(reinterpret_cast<std::byte*>(values.data()), head.bytes, poll); },
      column);
  return column;
}

void ForkedColumns::close() noexcept {
  if (pipe_ < 0) return;
  ::close(std::exchange(pipe_, -1));
  // A program may wait for all its children, and its system may give their numbers to others: only
  // a process that is still a child of this one is killed.
  const auto child = static_cast<pid_t>(std::exchange(child_, -1));
  if (waitpid(child, nullptr, WNOHANG) != 0) return;
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

#else

bool ForkedColumns::supported() {
  return false;
}

ForkedColumns::ForkedColumns(std::vector<MakeColumn>) {
  throw std::system_error(ENOSYS, std::generic_category(), "fork");
}

void ForkedColumns::read(std::byte*, size_t, Poll*) {}

AnyColumn ForkedColumns::next(Poll*) {
  throw std::logic_error("this system has no fork()");
}

void ForkedColumns::close() noexcept {}

#endif

}  // namespace dynhac
