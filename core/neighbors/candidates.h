// The search for the nearest among vectors with codes.
//
// While codes are scanned, Candidates has the places whose keys may be among the k smallest: with t
// the k-th smallest upper bound so far, all whose lower bound is not above t. Then `nearest`
// computes distances, by ascending lower bounds, until none that is left can be nearer than the
// k-th so far. So the result is exactly that of computing all distances.

#ifndef DYNHAC_NEIGHBORS_CANDIDATES_H_
#define DYNHAC_NEIGHBORS_CANDIDATES_H_

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "core/base/memory.h"
#include "core/neighbors/codes.h"
#include "core/neighbors/distinct_vectors.h"

namespace dynhac {

class Candidates {
 public:
  struct Candidate {
    KeyBounds key;
    uint32_t place;
  };

  // k must be > 0.
  Candidates(const QueryCode& query, size_t k) : query_(query), k_(k), room_(2 * k + kSpare) {}

  const QueryCode& query() const { return query_; }
  // A place with a lower bound above this is not among the nearest.
  float limit() const { return limit_; }
  // The lowest such limit for what was added, in whichever order it was.
  float tightened_limit() {
    prune();
    return limit_;
  }

  void add(KeyBounds key, uint32_t place) {
    if (key.lower > limit_) return;
    list_.push_back({key, place});
    if (list_.size() >= room_) prune();
  }

  // The candidates, by lower bound.
  std::span<const Candidate> sorted();

 private:
  static constexpr size_t kSpare = 128;

  void prune();

  QueryCode query_;
  size_t k_;
  size_t room_;  // when there are so many, they are pruned
  float limit_ = std::numeric_limits<float>::infinity();
  Vec<Candidate> list_;
  Vec<float> uppers_;  // used by prune
};

// Adds those in some blocks of codes whose lower bound is not above the limit. `dots` are their
// inner products with the query, and `hits` the answer of the kernel. place_of(position) is the
// place of a code, by its position in the blocks.
template <class PlaceOf>
void add_hits(Candidates& candidates, const Coder& coder, const CodeBlocks& codes,
              size_t first_block, std::span<const uint16_t> hits, const int32_t* dots,
              PlaceOf place_of) {
  for (size_t block = 0; block < hits.size(); ++block) {
    unsigned bits = hits[block];
    while (bits != 0) {
      const auto lane = static_cast<size_t>(std::countr_zero(bits));
      bits &= bits - 1;
      const size_t position = (first_block + block) * kLanes + lane;
      if (position >= codes.size()) break;
      candidates.add(coder.bounds(candidates.query(), *codes.terms(first_block + block), lane,
                                  dots[block * kLanes + lane]),
                     place_of(position));
    }
  }
}

// Writes the nearest slots of all candidates, by distance and then by slot, and -1 and infinity
// where there are fewer.
void nearest(Candidates& candidates, const DistanceFrom& distance, const DistinctVectors& vectors,
             std::span<int64_t> slots, std::span<double> distances);

// Writes the smallest slots, all of them at the same distance.
void first_slots(const DistinctVectors& vectors, double distance, std::span<int64_t> slots,
                 std::span<double> distances);

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_CANDIDATES_H_
