// From distances to similarities, the weights of the edges between neighbours.

#ifndef DYNHAC_POINTS_SIMILARITY_H_
#define DYNHAC_POINTS_SIMILARITY_H_

#include <span>

#include "core/base/parallel.h"

namespace dynhac {

class Similarity {
 public:
  virtual ~Similarity() = default;
  // Replaces distances by similarities, which are finite and >= 0.
  virtual void apply(std::span<double> values, Workers& workers) const = 0;
};

class SimilarityRule : public Similarity {
 public:
  enum class Kind {
    kInverse,   // 1 / (1 + distance)
    kGaussian,  // exp(-distance^2 / (2 sigma^2))
    kCosine,    // 1 - distance, or 0 if that is negative
    kDot,       // -distance, or 0 if that is negative
  };

  explicit SimilarityRule(Kind kind, double sigma = 1) : kind_(kind), sigma_(sigma) {}
  void apply(std::span<double> values, Workers& workers) const override;

 private:
  double of(double distance) const;

  Kind kind_;
  double sigma_;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_SIMILARITY_H_
