// Small codes of vectors, from which bounds of distances follow.
//
// Every metric has a *rank* r that grows with the distance D, and that is, up to a term of the
// query, half a square minus an inner product:
//
//   euclidean      r = D^2 / 2 = |q|^2 / 2 + (|x|^2 / 2 - <q, x>)    q, x: differences to a centre
//   cosine         r = D       = the same, for vectors of length 1 before they are centred
//   inner product  r = D       = -<q, centre> + (0 - <q, x>)         only x is centred
//
// The centre is any point; bounds are tighter if the vectors lie around it. All vectors are
// multiplied by a power of two as well, so that squares fit into a float. From here on q and x are
// these vectors, in exact arithmetic, and K is the *key* of x for q: the term in parentheses.
//
// The code of x: a scale s and whole numbers c, so that x = s c + e for a small rest e. Likewise
// q = t b + f. Then
//
//   <q, x> = t s <b, c> + <t b, e> + <f, x>,   and so   |<q, x> - t s <b, c>| <= |t b| |e| + |f|
//   |x|
//
// by Cauchy-Schwarz. <b, c> is a whole number without rounding errors; codes are at most
// sqrt(2^31 / dimension), if that is less than 127, so that it fits into 32 bits. With the names of
// BlockTerms and QueryTerms (scale, error >= |e|, length >= |x| or >= |t b|, low <= |x|^2 / 2):
//
//   lower = low - <b, c> scale scale' - (error length' + length error')             <= K
//   upper = length^2 / 2 - <b, c> scale scale' + (error length' + length error')    >= K
//
// Rounding. Let g = (dimension + 32) 2^-52 (|x before it was centred| + |centre|); for cosine 2^-23
// more, because the prepared vectors of which a distance is computed are rounded to float32.
// - Vectors are centred and multiplied in double. What comes out differs from x by less than g in
//   length. So |e| and |x| grow by g, and |x|^2 / 2 changes by less than g |x| + g^2.
// - The distance that is reported is rounded too. Of an inner product the error is below
//   g |q|, which adding g to |e| and to |x| covers, as |q| <= |t b| + |f|. For the other metrics
//   the limits of a QueryCode allow for it.
// - Lower bounds are computed in float. The error of these operations is below 2^-21 times the sum
//   of |low|, |<b, c>| scale scale' and the error bound. Relative slack of 2^-18 in every term
//   exceeds that and their own rounding: |<b, c>| scale scale' <= |t b| (|x| + |e|), so `error` has
//   2^-18 (|x| + |e|) in addition.
// - No product of terms underflows: a length is 0 or at least 2^-40, an error 0 or at least 2^-60.
//   A vector that is shorter than 2^-40 has the code 0, and is all rest.
//
// Where this does not hold, there is no bound: a vector that is longer than 2^60 has low =
// -infinity, and a query an error that is infinite. Their keys have the bounds -infinity and
// infinity. A zero vector with cosine, whose distance is not that of the formula, is one of them.

#ifndef DYNHAC_NEIGHBORS_CODES_H_
#define DYNHAC_NEIGHBORS_CODES_H_

#include <cstdint>
#include <span>

#include "core/base/memory.h"
#include "core/neighbors/kernels.h"
#include "core/neighbors/metric.h"
#include "core/neighbors/rows.h"

namespace dynhac {

// The code of a vector that is searched for.
struct QueryCode {
  QueryTerms terms;
  double offset = 0;          // rank minus key, up to rounding
  double slack = 0;           // more than the rounding errors of offset
  double relative_slack = 0;  // of a rank, relative to its size
  double factor = 1;          // by which ranks are multiplied
  Metric metric = Metric::kEuclidean;

  // A vector whose key has a lower bound above this is farther away than `distance`, as distances
  // are reported.
  double limit(double distance) const;
  // The same, for the distance of any vector whose key has this upper bound.
  float limit_of_key(float upper) const;
};

// The bounds of a key.
struct KeyBounds {
  float lower, upper;
};

// Blocks of codes, at places 0, 1, ...
class CodeBlocks {
 public:
  explicit CodeBlocks(size_t width) : width_(width) {}

  // Makes room for codes at places below `count`. All or nothing. `exactly`: for no more of them.
  void reserve(size_t count, bool exactly = false);
  // There are codes at places below `count` from now on, for which there must be room.
  void resize(size_t count) noexcept;
  size_t size() const { return size_; }
  size_t room() const { return terms_.capacity() * kLanes; }
  size_t n_blocks() const { return terms_.size(); }
  void move(size_t from, size_t to) noexcept { copy(*this, from, to); }
  // Copies a code from other blocks of the same width.
  void copy(const CodeBlocks& other, size_t from, size_t to) noexcept;

  const uint8_t* bytes(size_t block) const { return bytes_.data() + block * kLanes * width_; }
  const BlockTerms* terms(size_t block) const { return terms_.data() + block; }
  size_t memory() const { return bytes_.capacity() + terms_.capacity() * sizeof(BlockTerms); }

 private:
  friend class Coder;

  size_t width_;
  size_t size_ = 0;
  Vec<uint8_t> bytes_;
  Vec<BlockTerms> terms_;
};

class Coder {
 public:
  Coder(Metric metric, size_t dimension, const Kernel& kernel);

  Metric metric() const { return metric_; }
  size_t dimension() const { return dimension_; }
  size_t width() const { return width_; }  // bytes of a code
  const Kernel& kernel() const { return *kernel_; }

  // Moves the centre to the mean of rows 0 to count - 1. Codes that were made before are invalid
  // then.
  void centre_on(const VectorRows& rows, size_t count);
  // The same, to a centre that was saved, which is multiplied by the unit.
  void set_centre(std::span<const double> centre, double unit);
  std::span<const double> centre() const { return centre_; }
  double unit() const { return unit_; }
  // By which a vector is multiplied before it is centred; 0 if it has no direction.
  double multiplier(const float* vector) const noexcept;

  // Writes the code of a vector. Threads may write to different places.
  void encode(const float* vector, CodeBlocks& blocks, size_t place) const noexcept;
  // `bytes`: of the code.
  QueryCode encode_query(const float* vector, int8_t* bytes) const noexcept;

  // The bounds of the key of a code, whose inner product with the query's is `dot`.
  KeyBounds bounds(const QueryCode& query, const BlockTerms& terms, size_t lane, int32_t dot) const;

 private:
  struct Code;  // in codes.cc

  template <class Put>
  Code code_of(const float* vector, double multiplier, bool centred, Put put) const noexcept;

  Metric metric_;
  size_t dimension_, width_;
  const Kernel* kernel_;
  float most_;                // the largest number in a code
  double unit_ = 1;           // the power of two
  double prepared_rounding_;  // 2^-23 for cosine, else 0
  double rounding_;           // (dimension + 32) 2^-52
  Vec<double> centre_;        // multiplied by the unit
  double centre_length_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_CODES_H_
