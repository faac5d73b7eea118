// Reports the progress of long computations to Python, and handles signals such as Ctrl-C in them.
//
// A Meter handles signals up to 20 times a second, and reports up to 10 times a second and at the
// end of every phase. It is given a function that makes the object to report to, and calls it when
// there is something to report, after `delay` seconds at the earliest: work that is done sooner
// costs nothing. The object is called with (phase, done, total, unit, seconds of the phase, whether
// it has ended); its method `clear` is called if a phase does not reach its end. If the function
// returns None, nothing is reported.
//
// The interpreter lock is not held during a computation, but whenever a Meter is made or destroyed.

#ifndef DYNHAC_BINDINGS_POLL_H_
#define DYNHAC_BINDINGS_POLL_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <optional>
#include <string>

#include "core/base/progress.h"

namespace dynhac {

class Meter : public Poll {
 public:
  using Seconds = std::chrono::duration<double>;

  static constexpr Seconds kDelay{0.5};  // of what is shown by default

  // `start` is None if nothing is to be reported.
  explicit Meter(nanobind::object start, Seconds delay = kDelay)
      : start_(std::move(start)),
        eager_(delay == Seconds(0)),
        starts_at_(last_ + std::chrono::duration_cast<Ticks>(delay)) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter() override { close(); }

  void check() override;

  // Begins a phase of Python code.
  void begin_named(std::string phase, std::string unit, std::optional<uint64_t> total);

  // Ends the phase in progress, if there is one, as one that failed.
  void close() noexcept;

  int traverse(visitproc visit, void* arg) {
    Py_VISIT(start_.ptr());
    Py_VISIT(report_.ptr());
    return 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Ticks = Clock::duration;

  // Most phases are short, and asking the clock takes time.
  static constexpr uint64_t kShort = 1000;
  bool is_short() const { return total_ < kShort && !eager_ && !report_.is_valid(); }
  void began() override { phase_began_ = is_short() ? last_ : Clock::now(); }
  void ended() override;
  bool reports(Clock::time_point now);  // needs the interpreter lock
  void report(Clock::time_point now, bool ended);

  nanobind::object start_;   // None if nothing is to be reported
  nanobind::object report_;  // invalid before the first report
  const bool eager_;         // every phase is reported, however short
  Clock::time_point last_ = Clock::now(), starts_at_, last_report_{}, phase_began_ = last_;
  std::string name_, unit_;  // of a phase of Python code
  bool shown_ = false;       // the phase in progress has been reported
};

// The Poll of a native call: a Meter that Python has made, or a new one.
class CallPoll {
 public:
  // `progress`: None to report nothing, a Meter, or a function for a new Meter.
  explicit CallPoll(nanobind::handle progress);
  Poll* get() { return meter_; }

 private:
  std::optional<Meter> own_;
  Meter* meter_ = nullptr;
};

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_POLL_H_
