#include "core/neighbors/codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

namespace dynhac {
namespace {

constexpr double kSlack = 0x1p-18;
constexpr double kShortest = 0x1p-40, kLongest = 0x1p60;  // vectors with a code
constexpr double kLeastError = 0x1p-60;
constexpr double kTiny = 0x1p-100;  // less than any product of terms
constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr size_t kChunk = 64;  // numbers that are coded at a time
constexpr size_t kSums = 8;    // partial sums, which the compiler vectorises
constexpr uint8_t kZero = 128;

double total(const double (&sums)[kSums]) {
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// The nearest whole number, for less than 2^22 in size.
float rounded(float number) {
  constexpr float kShift = 0x1.8p23f;
  return (number + kShift) - kShift;
}

}  // namespace

double QueryCode::limit(double distance) const {
  const double rank = (metric == Metric::kEuclidean ? distance * distance / 2 : distance) * factor;
  return rank + std::fabs(rank) * relative_slack + (slack - offset);
}

float QueryCode::limit_of_key(float upper) const {
  const double size = std::fabs(offset) + std::fabs(double{upper});
  const double limit = upper + 2 * (slack + relative_slack * size);
  return std::nextafter(static_cast<float>(limit), kInfinite);
}

void CodeBlocks::reserve(size_t count, bool exactly) {
  const size_t blocks = (count + kLanes - 1) / kLanes;
  if (blocks > terms_.capacity()) {
    terms_.reserve(exactly ? blocks : std::max(blocks, 2 * terms_.capacity()));
  }
  const size_t bytes = terms_.capacity() * kLanes * width_;
  if (bytes > bytes_.capacity()) bytes_.reserve(bytes);
}

void CodeBlocks::resize(size_t count) noexcept {
  const size_t blocks = (count + kLanes - 1) / kLanes;
  constexpr BlockTerms kNothing = {};
  terms_.resize(blocks, kNothing);
  bytes_.resize(blocks * kLanes * width_, kZero);
  size_ = count;
}

void CodeBlocks::copy(const CodeBlocks& other, size_t from, size_t to) noexcept {
  const uint8_t* source = other.bytes(from / kLanes) + from % kLanes * 4;
  uint8_t* target = bytes_.data() + to / kLanes * kLanes * width_ + to % kLanes * 4;
  for (size_t j = 0; j < width_ * kLanes; j += 4 * kLanes) std::memcpy(target + j, source + j, 4);
  const BlockTerms& old = other.terms_[from / kLanes];
  BlockTerms& terms = terms_[to / kLanes];
  terms.scale[to % kLanes] = old.scale[from % kLanes];
  terms.error[to % kLanes] = old.error[from % kLanes];
  terms.length[to % kLanes] = old.length[from % kLanes];
  terms.low[to % kLanes] = old.low[from % kLanes];
}

Coder::Coder(Metric metric, size_t dimension, const Kernel& kernel)
    : metric_(metric),
      dimension_(dimension),
      width_((dimension + 3) / 4 * 4),
      kernel_(&kernel),
      most_(std::min(127.0f, std::floor(static_cast<float>(
                                 std::sqrt(0x1.fffffcp30 / static_cast<double>(dimension)))))),
      prepared_rounding_(metric == Metric::kCosine ? 0x1p-23 : 0),
      rounding_((static_cast<double>(dimension) + 32) * 0x1p-52),
      centre_(dimension) {}

double Coder::multiplier(const float* vector) const noexcept {
  if (metric_ != Metric::kCosine) return unit_;
  const std::span row(vector, dimension_);
  // Zero for a zero vector, which has no direction.
  const bool zero = std::ranges::all_of(row, [](float number) { return number == 0; });
  return zero ? 0 : 1 / divisor(row, *kernel_);
}

void Coder::centre_on(const VectorRows& rows, size_t count) {
  Vec<double> sums(dimension_);
  double largest = 0;
  for (size_t row = 0; row < count; ++row) {
    const float* vector = rows.row(static_cast<int64_t>(row));
    double scale = 1;
    if (metric_ == Metric::kCosine) {
      scale = multiplier(vector);
    } else {
      float most = 0;
      for (size_t j = 0; j < dimension_; ++j) most = std::max(most, std::fabs(vector[j]));
      largest = std::max(largest, double{most});
    }
    for (size_t j = 0; j < dimension_; ++j) sums[j] += vector[j] * scale;
  }
  const double unit = largest > 0 ? std::ldexp(1, -std::ilogb(largest)) : 1;
  for (double& sum : sums) sum = count > 0 ? sum / static_cast<double>(count) * unit : 0;
  set_centre(sums, unit);
}

void Coder::set_centre(std::span<const double> centre, double unit) {
  unit_ = unit;
  std::ranges::copy(centre, centre_.begin());
  double square = 0;
  for (const double number : centre_) square += number * number;
  centre_length_ = std::sqrt(square) * (1 + 0x1p-20);
}

// What is known of a code, before it is rounded to terms.
struct Coder::Code {
  double length = 0;    // of the vector, as it was centred
  double rounding = 0;  // its error: g
  double rest = 0;      // the length of e, up to rounding
  double square = 0;    // of the numbers in the code
  float scale = 0;
};

// Calls put(j, numbers, count) for the code, in parts. `put` is given zeros if there is no code.
template <class Put>
Coder::Code Coder::code_of(const float* vector, double multiplier, bool centred,
                           Put put) const noexcept {
  const double* centre = centre_.data();
  const double weight = centred ? 1 : 0;
  const auto moved = [=](size_t j) { return vector[j] * multiplier - weight * centre[j]; };
  double sums[kSums] = {}, largest[kSums] = {};
  const auto measure = [&](size_t j, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const double number = moved(j + i);
      sums[i] += number * number;
      largest[i] = std::max(largest[i], std::fabs(number));
    }
  };
  size_t begin = 0;
  for (; begin + kSums <= dimension_; begin += kSums) measure(begin, kSums);
  measure(begin, dimension_ - begin);

  Code code;
  code.length = std::sqrt(total(sums));
  code.rounding = rounding_ * (code.length + weight * 2 * centre_length_) + prepared_rounding_;
  const bool coded = kShortest <= code.length && code.length <= kLongest;
  const double most = *std::max_element(largest, largest + kSums);
  code.scale = coded ? static_cast<float>(most / most_) : 0;
  const double scale = code.scale;
  const float inverse = coded ? 1 / code.scale : 0;
  double rests[kSums] = {};
  int64_t square = 0;
  for (begin = 0; begin < width_; begin += kChunk) {
    int8_t numbers[kChunk] = {};
    const size_t count = std::min(kChunk, dimension_ - begin);
    int32_t part = 0;
    const auto round = [&](size_t at, size_t n) {
      for (size_t i = 0; i < n; ++i) {
        const double number = moved(begin + at + i);
        const float whole = coded ? rounded(static_cast<float>(number) * inverse) : 0;
        const double rest = number - scale * double{whole};
        rests[i] += rest * rest;
        const auto small = static_cast<int32_t>(whole);
        numbers[at + i] = static_cast<int8_t>(small);
        part += small * small;
      }
    };
    size_t at = 0;
    for (; at + kSums <= count; at += kSums) round(at, kSums);
    round(at, count - at);
    square += part;
    put(begin, numbers, std::min(kChunk, width_ - begin));
  }
  code.rest = std::sqrt(total(rests));
  code.square = static_cast<double>(square);
  return code;
}

void Coder::encode(const float* vector, CodeBlocks& blocks, size_t place) const noexcept {
  const size_t lane = place % kLanes;
  uint8_t* bytes = blocks.bytes_.data() + place / kLanes * kLanes * width_ + lane * 4;
  const double scaled = multiplier(vector);
  const Code code =
      code_of(vector, scaled, true, [&](size_t begin, const int8_t* numbers, size_t count) {
        for (size_t i = 0; i < count; i += 4) {
          uint8_t four[4];
          for (size_t j = 0; j < 4; ++j) four[j] = static_cast<uint8_t>(numbers[i + j] + kZero);
          std::memcpy(bytes + (begin + i) * kLanes, four, 4);
        }
      });
  BlockTerms& terms = blocks.terms_[place / kLanes];
  const double g = code.rounding, half = code.length * code.length / 2, rest = code.rest + g;
  const bool bounded = code.length <= kLongest && scaled > 0;
  terms.scale[lane] = bounded ? code.scale : 0;
  terms.error[lane] = bounded
                          ? static_cast<float>(std::max(
                                (rest + kSlack * (code.length + rest)) * (1 + kSlack), kLeastError))
                          : 0;
  terms.length[lane] =
      bounded ? static_cast<float>(std::max((code.length + g) * (1 + kSlack), kShortest)) : 0;
  if (!bounded) {
    terms.low[lane] = -kInfinite;
  } else if (metric_ == Metric::kInnerProduct) {
    terms.low[lane] = 0;
  } else {
    terms.low[lane] = static_cast<float>(half - kSlack * half - g * (code.length + g) - kTiny);
  }
}

QueryCode Coder::encode_query(const float* vector, int8_t* bytes) const noexcept {
  const bool centred = metric_ != Metric::kInnerProduct;
  const double scaled = multiplier(vector);
  const Code code =
      code_of(vector, scaled, centred, [&](size_t begin, const int8_t* numbers, size_t count) {
        std::memcpy(bytes + begin, numbers, count);
      });
  QueryCode query;
  query.metric = metric_;
  query.factor = metric_ == Metric::kCosine ? 1 : unit_ * unit_;
  query.relative_slack = 4 * rounding_;
  if (!(code.length <= kLongest && scaled > 0)) {
    query.terms = {0, kInfinite, 0};
    return query;
  }
  const double g = code.rounding, rest = code.rest + g;
  const double coded = code.scale * std::sqrt(code.square) * (1 + kSlack);
  query.terms.scale = code.scale;
  query.terms.error = static_cast<float>(
      std::max((rest + kSlack * (code.length + rest)) * (1 + kSlack), kLeastError));
  query.terms.length = static_cast<float>(std::max(coded, kShortest));
  if (centred) {
    query.offset = code.length * code.length / 2;
    query.slack = 4 * (g * (code.length + g) + rounding_ * query.offset);
    if (metric_ == Metric::kCosine) query.slack += 4 * rounding_;
  } else {
    for (size_t j = 0; j < dimension_; ++j) query.offset -= vector[j] * scaled * centre_[j];
    query.slack = 4 * rounding_ * code.length * centre_length_;
  }
  return query;
}

KeyBounds Coder::bounds(const QueryCode& query, const BlockTerms& terms, size_t lane,
                        int32_t dot) const {
  const float scale = terms.scale[lane], error = terms.error[lane], length = terms.length[lane];
  // The lower bound as kernels compute it.
  const float product = static_cast<float>(dot) * scale * query.terms.scale;
  const float errors = error * query.terms.length + length * query.terms.error;
  KeyBounds bounds;
  bounds.lower = (terms.low[lane] - product) - errors;
  if (!(bounds.lower > -kInfinite)) return {-kInfinite, kInfinite};
  const double half = metric_ == Metric::kInnerProduct ? 0 : double{length} * length / 2;
  bounds.upper = static_cast<float>(half - double{product} + errors + kTiny);
  return bounds;
}

}  // namespace dynhac
