// Codes: all kernels compute the same, and bounds hold for the distances that are reported.

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/neighbors/codes.h"
#include "core/tests/testing.h"
#include "core/tests/vector_shapes.h"

namespace dynhac {
namespace {

using testing::Shape;
using testing::Vector;

constexpr Metric kMetrics[] = {Metric::kEuclidean, Metric::kCosine, Metric::kInnerProduct};

struct Table : VectorRows {
  const float* row(int64_t number) const override {
    return vectors[static_cast<size_t>(number)].data();
  }
  std::vector<Vector> vectors;
};

TEST(kernels_compute_the_same_products) {
  Random random(testing::base_seed());
  const Kernel& plain = kernels().back();
  EXPECT_EQ(std::string(plain.name), "plain");
  for (const size_t width : {4u, 8u, 12u, 64u, 100u, 384u, 4096u}) {
    for (size_t queries = 1; queries <= kQueriesAtOnce; ++queries) {
      const size_t blocks = 1 + random.next() % 9;
      std::vector<int8_t> own(queries * width);
      std::vector<uint8_t> stored(blocks * kLanes * width);
      const bool extreme = random.chance(0.3);
      const auto number = [&] {
        return extreme ? (random.chance(0.5) ? 127 : -127)
                       : static_cast<int>(random.below(255)) - 127;
      };
      for (int8_t& v : own) v = static_cast<int8_t>(number());
      for (uint8_t& v : stored) v = static_cast<uint8_t>(number() + 128);
      std::vector<int32_t> expected(queries * blocks * kLanes);
      plain.dots(own.data(), queries, stored.data(), blocks, width, expected.data());
      int64_t first = 0;
      for (size_t j = 0; j < width; ++j) {
        first += own[j] * (int{stored[j / 4 * 4 * kLanes + j % 4]} - 128);
      }
      EXPECT_EQ(first, expected[0]);
      for (const Kernel& kernel : kernels()) {
        std::vector<int32_t> dots(expected.size(), -1);
        kernel.dots(own.data(), queries, stored.data(), blocks, width, dots.data());
        EXPECT(dots == expected);
      }
    }
  }
}

TEST(kernels_compute_the_same_bounds_and_sums) {
  Random random(testing::base_seed());
  const Kernel& plain = kernels().back();
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, 1e30f, 1e-30f, NAN};
  for (int round = 0; round < 300; ++round) {
    constexpr size_t kBlocks = 5;
    BlockTerms terms[kBlocks];
    int32_t dots[kBlocks * kLanes];
    const auto number = [&] {
      return random.chance(0.05) ? special[random.below(7)]
                                 : static_cast<float>(random.uniform() * 4 - 2);
    };
    for (BlockTerms& block : terms) {
      for (auto* column : {&block.scale, &block.error, &block.length, &block.low}) {
        for (float& v : *column) v = number();
      }
    }
    for (int32_t& dot : dots) dot = static_cast<int32_t>(random.below(2000)) - 1000;
    const QueryTerms query{number() * 1e-3f, number(), number()};
    const float limit = number();
    uint16_t expected[kBlocks], hits[kBlocks];
    plain.hits(dots, terms, kBlocks, query, limit, expected);
    const size_t d = 1 + random.next() % kMostSummed;
    const Vector a = testing::random_vector(random, Shape::kMagnitudes, d);
    const Vector b = testing::random_vector(random, Shape::kSpread, d);
    for (const Kernel& kernel : kernels()) {
      kernel.hits(dots, terms, kBlocks, query, limit, hits);
      EXPECT_EQ(std::memcmp(hits, expected, sizeof hits), 0);
      EXPECT_EQ(kernel.squares(a.data(), b.data(), d), plain.squares(a.data(), b.data(), d));
      EXPECT_EQ(kernel.products(a.data(), b.data(), d), plain.products(a.data(), b.data(), d));
      EXPECT_EQ(kernel.products(a.data(), b.data(), d), kernel.products(b.data(), a.data(), d));
      const ScaledSums sums = kernel.scaled(a.data(), b.data(), 0.3, d);
      const ScaledSums same = plain.scaled(a.data(), b.data(), 0.3, d);
      EXPECT(sums.product == same.product && sums.square == same.square);
    }
  }
}

// Every vector against every other: what the bounds exclude must be farther away.
void check_bounds(Metric metric, const Table& table, const Table& queries, size_t d,
                  const Kernel& kernel, size_t& excluded) {
  const size_t n = table.vectors.size();
  Coder coder(metric, d, kernel);
  coder.centre_on(table, n);
  CodeBlocks blocks(coder.width());
  blocks.reserve(n);
  blocks.resize(n);
  for (size_t i = 0; i < n; ++i) coder.encode(table.row(static_cast<int64_t>(i)), blocks, i);
  std::vector<int8_t> bytes(coder.width());
  std::vector<int32_t> dots(blocks.n_blocks() * kLanes);
  for (const Vector& q : queries.vectors) {
    const QueryCode query = coder.encode_query(q.data(), bytes.data());
    kernel.dots(bytes.data(), 1, blocks.bytes(0), blocks.n_blocks(), coder.width(), dots.data());
    const DistanceFrom distance(metric, q, kernel);
    std::vector<double> distances(n);
    std::vector<KeyBounds> keys(n);
    for (size_t i = 0; i < n; ++i) {
      distances[i] = distance.to(table.row(static_cast<int64_t>(i)));
      keys[i] = coder.bounds(query, *blocks.terms(i / kLanes), i % kLanes, dots[i]);
      EXPECT(keys[i].lower <= keys[i].upper);
      EXPECT(!(double{keys[i].lower} > query.limit(distances[i])));
    }
    if (distance.to_all()) continue;
    for (size_t i = 0; i < n; ++i) {
      const double limit = query.limit(distances[i]);
      const float key_limit = query.limit_of_key(keys[i].upper);
      for (size_t j = 0; j < n; ++j) {
        if (double{keys[j].lower} > limit) EXPECT(distances[j] > distances[i]);
        if (!(keys[j].lower > key_limit)) continue;
        EXPECT(distances[j] > distances[i]);
        ++excluded;
      }
    }
  }
}

TEST(bounds_of_codes_hold) {
  for (const size_t d : {1u, 2u, 3u, 4u, 5u, 8u, 16u, 17u, 65u, 384u, 1000u, 4096u}) {
    for (int shape = 0; shape < static_cast<int>(Shape::kCount); ++shape) {
      Random random(testing::base_seed() + 100 * d + static_cast<uint64_t>(shape));
      Table table, queries;
      const size_t n = d > 500 ? 20 : 60;
      for (size_t i = 0; i < n; ++i) {
        table.vectors.push_back(testing::random_vector(random, static_cast<Shape>(shape), d));
      }
      for (int i = 0; i < 6; ++i) {
        const auto other = static_cast<Shape>(random.below(static_cast<int64_t>(Shape::kCount)));
        queries.vectors.push_back(random.chance(0.3) ? random.pick(table.vectors)
                                                     : testing::random_vector(random, other, d));
      }
      size_t excluded = 0;
      for (const Metric metric : kMetrics) {
        check_bounds(metric, table, queries, d, kernels().front(), excluded);
      }
    }
  }
}

TEST(bounds_of_codes_are_narrow) {
  for (const Shape shape :
       {Shape::kSpread, Shape::kPositive, Shape::kFarAway, Shape::kHuge, Shape::kTiny}) {
    for (const Metric metric : kMetrics) {
      Random random(testing::base_seed());
      Table table, queries;
      for (int i = 0; i < 200; ++i) {
        table.vectors.push_back(testing::random_vector(random, shape, 64));
      }
      queries.vectors.assign(table.vectors.begin(), table.vectors.begin() + 5);
      size_t excluded = 0;
      check_bounds(metric, table, queries, 64, kernels().front(), excluded);
      // Of 5 * 200 * 199 / 2 pairs with another distance. An inner product with vectors of a common
      // offset is nearly the same for all.
      const bool offset =
          metric != Metric::kEuclidean && (shape == Shape::kPositive || shape == Shape::kFarAway);
      if (!offset) EXPECT(excluded > 70'000);
    }
  }
}

TEST(codes_of_very_many_dimensions_do_not_overflow) {
  constexpr size_t kDimension = 400'000;
  Table table, queries;
  table.vectors.emplace_back(kDimension, 1.0f);
  table.vectors.emplace_back(kDimension, -1.0f);
  table.vectors.emplace_back(kDimension, 0.5f);
  queries.vectors = table.vectors;
  size_t excluded = 0;
  check_bounds(Metric::kEuclidean, table, queries, kDimension, kernels().front(), excluded);
  check_bounds(Metric::kInnerProduct, table, queries, kDimension, kernels().front(), excluded);
  EXPECT(excluded >= 6);
}

}  // namespace
}  // namespace dynhac
