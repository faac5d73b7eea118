// Guards a model or a watch against re-entry.
//
// An update runs under a lock that its own thread can take again. Code that is called meanwhile, a
// function of the user's or a signal handler, must not start another one: it finds the guard held.

#ifndef DYNHAC_BINDINGS_REENTRY_GUARD_H_
#define DYNHAC_BINDINGS_REENTRY_GUARD_H_

#include <string>

namespace dynhac {

struct ReentryGuard {
  std::string message;  // of the error on entering it while it is held
  bool held = false;
};

class ScopedHold {
 public:
  explicit ScopedHold(ReentryGuard& guard) : guard_(guard) { guard_.held = true; }
  ScopedHold(const ScopedHold&) = delete;
  ScopedHold& operator=(const ScopedHold&) = delete;
  ~ScopedHold() { guard_.held = false; }

 private:
  ReentryGuard& guard_;
};

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_REENTRY_GUARD_H_
