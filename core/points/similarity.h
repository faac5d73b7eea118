// From distances to similarities, the weights of the edges between neighbours.

#ifndef DYNHAC_POINTS_SIMILARITY_H_
#define DYNHAC_POINTS_SIMILARITY_H_

namespace dynhac {

struct Similarity {
  enum class Rule {
    kInverse,   // 1 / (1 + distance)
    kGaussian,  // exp(-distance^2 / (2 sigma^2))
    kCosine,    // 1 - distance, or 0 if that is negative
    kDot,       // -distance, or 0 if that is negative
  };
  Rule rule = Rule::kInverse;
  double sigma = 1;

  double operator()(double distance) const;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_SIMILARITY_H_
