// How a long computation says how far it is, and learns that it must stop.
//
// The caller of a long computation passes it a Poll. A computation is a sequence of phases. It
// begins a phase with its total amount of work, says how much is done, and calls check() often
// enough: several times a second in every loop that can be long, also if there is no progress to
// report. check() throws to cancel the computation, which then undoes what it did.
//
// Only the thread that was called uses the Poll; threads that help it do not. There may be no Poll:
// it is passed as a pointer, and nullptr means that the computation runs to its end.
//
// The last phase must end before the changes of an update become permanent, because ended() may
// throw too.

#ifndef DYNHAC_BASE_PROGRESS_H_
#define DYNHAC_BASE_PROGRESS_H_

#include <algorithm>
#include <cstdint>

namespace dynhac {

struct Phase {
  const char* name;
  const char* unit;  // of the work, in the plural
};

namespace phases {

inline constexpr Phase kIndexing = {"indexing", "points"};     // into the neighbour index
inline constexpr Phase kSearching = {"searching", "points"};   // for their neighbours
inline constexpr Phase kReading = {"reading", "edges"};        // of a batch
inline constexpr Phase kBuilding = {"building", "edges"};      // of the lowest level
inline constexpr Phase kAuditing = {"auditing", "entries"};    // of adjacency lists
inline constexpr Phase kVerifying = {"verifying", "merges"};   // by replaying them
inline constexpr Phase kRestoring = {"restoring", "entries"};  // of adjacency lists

}  // namespace phases

class Poll {
 public:
  virtual ~Poll() = default;

  static constexpr uint64_t kUnknown = UINT64_MAX;  // a total

  // Begins a phase, which ends the one before. A phase without work is not reported.
  void begin(Phase phase, uint64_t total) {
    end();
    if (total == 0) return;
    phase_ = phase;
    total_ = total;
    done_ = 0;
    began();
  }

  void end() {
    if (phase_.name == nullptr) return;
    if (total_ != kUnknown) done_ = total_;
    ended();
    phase_ = {};
  }

  void advance(uint64_t amount) {
    done_ = std::min(done_ + amount, total_);
    check();
  }
  // Like advance; estimates may go back, but what is reported does not.
  void reach(uint64_t done) {
    done_ = std::max(done_, std::min(done, total_));
    check();
  }

  // Throws to cancel the computation.
  virtual void check() = 0;

 protected:
  // The phase has begun, or ended. Throw to cancel the computation.
  virtual void began() {}
  virtual void ended() {}

  Phase phase_ = {};  // without a name: none
  uint64_t done_ = 0, total_ = 0;
};

inline void begin_phase(Poll* poll, Phase phase, uint64_t total) {
  if (poll != nullptr) poll->begin(phase, total);
}

// Counts the steps of a loop, and calls a Poll once in many of them.
class Pace {
 public:
  static constexpr uint64_t kEvery = uint64_t{1} << 20;  // steps of a few nanoseconds each

  explicit Pace(Poll* poll = nullptr) : poll_(poll) {}

  // `done`: how much of the phase they are.
  void step(uint64_t steps = 1, uint64_t done = 0) {
    steps_ += steps;
    done_ += done;
    if (steps_ < kEvery) return;
    const uint64_t passed = done_;
    steps_ = done_ = 0;
    if (poll_ != nullptr) poll_->advance(passed);
  }

 private:
  Poll* poll_;
  uint64_t steps_ = 0, done_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_PROGRESS_H_
