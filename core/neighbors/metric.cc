#include "core/neighbors/metric.h"

#include <algorithm>
#include <cmath>

namespace dynhac {
namespace {

// From sums of products of two vectors, and of each with itself. The square root of a rounded
// square is the number itself: the cosine of equal vectors is exactly 1.
double cosine_distance(double product, double square_a, double square_b) {
  const double scale = std::sqrt(square_a * square_b);
  return scale == 0 ? 1 : std::fmax(1 - product / scale, 0);
}

ScaledSums operator+(const ScaledSums& a, const ScaledSums& b) {
  return {a.product + b.product, a.square + b.square};
}

// Adds up what add(begin, count) returns for parts of up to kMostSummed numbers.
template <class Add>
auto tree_sum(size_t begin, size_t count, const Add& add) {
  if (count <= kMostSummed) return add(begin, count);
  const size_t half = count / 2 / 8 * 8;
  return tree_sum(begin, half, add) + tree_sum(begin + half, count - half, add);
}

double products(std::span<const float> a, std::span<const float> b, const Kernel& kernel) {
  return tree_sum(0, a.size(), [&](size_t begin, size_t count) {
    return kernel.products(a.data() + begin, b.data() + begin, count);
  });
}

double squares(std::span<const float> a, std::span<const float> b, const Kernel& kernel) {
  return tree_sum(0, a.size(), [&](size_t begin, size_t count) {
    return kernel.squares(a.data() + begin, b.data() + begin, count);
  });
}

}  // namespace

double divisor(std::span<const float> vector, const Kernel& kernel) {
  const double length = std::sqrt(products(vector, vector, kernel));
  return length == 0 ? 1 : length;
}

void scale_to_length_1(std::span<const float> vector, const Kernel& kernel, float* scaled) {
  const double length = divisor(vector, kernel);
  for (size_t j = 0; j < vector.size(); ++j) scaled[j] = static_cast<float>(vector[j] / length);
}

double distance(Metric metric, std::span<const float> a, std::span<const float> b,
                const Kernel& kernel) {
  if (metric == Metric::kEuclidean) return std::sqrt(squares(a, b, kernel));
  const double product = products(a, b, kernel);
  if (metric == Metric::kInnerProduct) return 0.0 - product;
  return cosine_distance(product, products(a, a, kernel), products(b, b, kernel));
}

DistanceFrom::DistanceFrom(Metric metric, std::span<const float> vector, const Kernel& kernel)
    : metric_(metric), kernel_(&kernel), vector_(vector) {
  if (metric == Metric::kEuclidean) return;
  const bool zero = std::ranges::all_of(vector, [](float number) { return number == 0; });
  if (zero) to_all_ = metric == Metric::kCosine ? 1 : 0;
  if (metric != Metric::kCosine) return;
  scaled_.resize(vector.size());
  scale_to_length_1(vector, kernel, scaled_.data());
  vector_ = scaled_;
  square_ = products(scaled_, scaled_, kernel);
}

double DistanceFrom::to(const float* other) const {
  const std::span row(other, vector_.size());
  if (metric_ != Metric::kCosine) return distance(metric_, vector_, row, *kernel_);
  const double length = divisor(row, *kernel_);
  const ScaledSums sums = tree_sum(0, row.size(), [&](size_t begin, size_t count) {
    return kernel_->scaled(vector_.data() + begin, other + begin, length, count);
  });
  return cosine_distance(sums.product, square_, sums.square);
}

}  // namespace dynhac
