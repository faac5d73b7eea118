// check() on cases worked out by hand, and on bad input. Against a naive replay:
// test_check_random.cc.

#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "core/base/memory.h"
#include "core/tests/check_input.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_result(const char* what, const CheckResult& result, const CheckResult& expected) {
  const int64_t before = testing::state().failures;
  EXPECT_EQ(result.merges, expected.merges);
  EXPECT_EQ(result.bad_merges, expected.bad_merges);
  EXPECT_EQ(result.worst_goodness, expected.worst_goodness);
  EXPECT_EQ(result.wrong_similarities, expected.wrong_similarities);
  EXPECT_EQ(result.heavy_edges_left, expected.heavy_edges_left);
  if (testing::state().failures != before) std::cout << "  in: " << what << "\n";
}

CheckInput path_of_three() {
  return CheckInput(3).edge(0, 1, 4).edge(1, 2, 2);
}

TEST(check_of_no_merges) {
  expect_result("no leaves", CheckInput(0).run(), {0, 0, 1, 0, 0});
  expect_result("no edges", CheckInput(3).run(), {0, 0, 1, 0, 0});
  expect_result("no merges", path_of_three().run(), {0, 0, 1, 0, 2});
}

TEST(check_good_merges) {
  // {0,1} at 4, then with 2 at 2 / (2*1).
  const CheckInput good = path_of_three().merge(0, 1, 4, 0).merge(3, 2, 1, 1);
  expect_result("two levels", good.run(), {2, 0, 1, 0, 0});
  CheckInput scaled = good;
  scaled.resolution = 0.25;
  scaled.similarity = {1, 0.25};
  expect_result("resolution", scaled.run(), {2, 0, 1, 0, 0});
  expect_result("children the other way round",
                path_of_three().merge(1, 0, 4, 0).merge(2, 3, 1, 7).run(), {2, 0, 1, 0, 0});
}

TEST(check_bad_through_a_neighbour_outside) {
  // 1 is merged with 2 at linkage 2, although it has 0 at linkage 4. Left: 4 / (2*1).
  CheckInput bad = path_of_three().merge(1, 2, 2, 0);
  expect_result("exact", bad.run(), {1, 1, 2, 0, 1});
  bad.epsilon = 1;
  expect_result("just good", bad.run(), {1, 0, 2, 0, 1});
  bad.epsilon = 0.999;
  expect_result("just bad", bad.run(), {1, 1, 2, 0, 1});
  expect_result("from the light side", path_of_three().merge(2, 1, 2, 0).run(), {1, 1, 2, 0, 1});
}

TEST(check_bad_through_min_merge) {
  // {0,1} at 2, which is good: 1.5 * 2 >= 3. Then with 2 at 6 / (2*1) = 3, while 2 has 3 at linkage
  // 4: fine for linkage 3, not for M({0,1}) = 2.
  CheckInput bad(4);
  bad.epsilon = 0.5;
  bad.edge(0, 1, 2).edge(0, 2, 3).edge(1, 2, 3).edge(2, 3, 4);
  bad.merge(0, 1, 2, 0).merge(4, 2, 3, 1);
  expect_result("next level", bad.run(), {2, 1, 2, 0, 1});
  bad.level = {0, 0};
  expect_result("same group", bad.run(), {2, 1, 2, 0, 1});
  // Nothing but M: the second merge takes all that is left, at 3 with M = 1.
  CheckInput triangle = CheckInput(3).edge(0, 1, 1).edge(0, 2, 3).edge(1, 2, 3);
  triangle.merge(0, 1, 1, 0).merge(3, 2, 3, 1);
  expect_result("triangle", triangle.run(), {2, 2, 3, 0, 0});
}

TEST(check_judges_against_the_start_of_the_level) {
  // {0,1,2} is made at linkage 8 / (2*1*2) = 2. Vertex 2 has 3 at linkage 3, but {3,4} at 3/2 only:
  // the merge of 3 and 4 counts if it was made on an earlier level, not if on the same.
  CheckInput base(5);
  base.edge(0, 1, 4).edge(1, 2, 4).edge(2, 3, 3).edge(3, 4, 10);
  base.merge(3, 4, 10, 0).merge(0, 1, 4, 0);
  CheckInput same = base, later = base;
  expect_result("same level", same.merge(6, 2, 2, 0).run(), {3, 1, 1.5, 0, 1});
  expect_result("next level", later.merge(6, 2, 2, 1).run(), {3, 0, 1, 0, 1});
  // All in one group: the last merge, at 3 / (3*2) = 0.5, has nothing outside.
  same.merge(7, 5, 0.5, 0);
  expect_result("one group", same.run(), {4, 1, 1.5, 0, 0});
}

TEST(check_wrong_similarity) {
  CheckInput wrong = path_of_three().merge(0, 1, 4.00001, 0).merge(3, 2, 1 + 1e-13, 1);
  expect_result("off by 1e-5, and by 1e-13", wrong.run(), {2, 0, 1, 1, 0});
  wrong.similarity = {kNan, kInfinity};
  expect_result("not numbers", wrong.run(), {2, 0, 1, 2, 0});
}

TEST(check_merge_without_an_edge) {
  const CheckInput bad = CheckInput(3).edge(0, 1, 4).merge(0, 2, 0, 0);
  expect_result("a neighbour besides", bad.run(), {1, 1, kInfinity, 0, 1});
  expect_result("no edge at all", CheckInput(2).merge(0, 1, 0, 0).run(), {1, 1, kInfinity, 0, 0});
}

TEST(check_threshold) {
  // Linkages 4 and 1; the limit is threshold / (1+epsilon).
  CheckInput path = path_of_three().merge(0, 1, 4, 0).merge(3, 2, 1, 1);
  path.threshold = 1.5;
  expect_result("second merge too light", path.run(), {2, 1, 1, 0, 0});
  path.epsilon = 0.5;
  expect_result("exactly the limit", path.run(), {2, 0, 1, 0, 0});

  CheckInput half = path_of_three().merge(0, 1, 4, 0);
  half.threshold = 0.99;
  expect_result("heavy edge left", half.run(), {1, 0, 1, 0, 1});
  half.threshold = 1;
  expect_result("at the limit, up to rounding: not counted", half.run(), {1, 0, 1, 0, 0});
  half.threshold = 1.01;
  expect_result("light edge left", half.run(), {1, 0, 1, 0, 0});
  half.epsilon = 0.1;
  expect_result("heavy again", half.run(), {1, 0, 1, 0, 1});
}

TEST(check_sums_parallel_edges_of_clusters) {
  // A square of two pairs: 4 edges of weight 1 between them make one edge of linkage 1.
  CheckInput square = CheckInput(4).edge(0, 1, 9).edge(2, 3, 8);
  square.edge(0, 2, 1).edge(0, 3, 1).edge(1, 2, 1).edge(3, 1, 1);
  square.merge(0, 1, 9, 0).merge(2, 3, 8, 0);
  expect_result("one edge left", square.run(), {2, 0, 1, 0, 1});
  expect_result("merged", square.merge(4, 5, 1, 1).run(), {3, 0, 1, 0, 0});
}

TEST(check_rejects_malformed_input) {
  const CheckInput good = path_of_three().merge(0, 1, 4, 0).merge(3, 2, 1, 1);
  const auto expect_rejected = [&good](const char* what, auto&& spoil) {
    CheckInput bad = good;
    spoil(bad);
    try {
      bad.run();
      testing::fail(__FILE__, __LINE__, std::string("accepted: ") + what);
    } catch (const std::invalid_argument&) {
    }
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  expect_rejected("n < 0", [](CheckInput& bad) { bad.n = -1; });
  expect_rejected("n huge", [](CheckInput& bad) { bad.n = kMost; });
  expect_rejected("too many merges", [](CheckInput& bad) { bad.merge(0, 1, 1, 1); });
  expect_rejected("child < 0", [](CheckInput& bad) { bad.children[0] = -1; });
  expect_rejected("child is itself", [](CheckInput& bad) { bad.children[0] = 3; });
  expect_rejected("child comes later", [](CheckInput& bad) { bad.children[0] = 4; });
  expect_rejected("child twice", [](CheckInput& bad) { bad.children[3] = 0; });
  expect_rejected("same child twice", [](CheckInput& bad) { bad.children[0] = 1; });
  expect_rejected("children odd", [](CheckInput& bad) { bad.children.pop_back(); });
  expect_rejected("level missing", [](CheckInput& bad) { bad.level.pop_back(); });
  expect_rejected("similarity missing", [](CheckInput& bad) { bad.similarity.pop_back(); });
  expect_rejected("level < 0", [](CheckInput& bad) { bad.level = {-1, 0}; });
  expect_rejected("level falls", [](CheckInput& bad) { bad.level = {1, 0}; });
  expect_rejected("u short", [](CheckInput& bad) { bad.u.pop_back(); });
  expect_rejected("w short", [](CheckInput& bad) { bad.w.pop_back(); });
  expect_rejected("end too large", [](CheckInput& bad) { bad.u[0] = 3; });
  expect_rejected("end < 0", [](CheckInput& bad) { bad.v[0] = -1; });
  expect_rejected("loop", [](CheckInput& bad) { bad.v[0] = bad.u[0]; });
  expect_rejected("weight 0", [](CheckInput& bad) { bad.w[0] = 0; });
  expect_rejected("weight < 0", [](CheckInput& bad) { bad.w[0] = -5; });
  expect_rejected("sum of weights", [](CheckInput& bad) { bad.w[0] = kMost; });
  expect_rejected("edge twice", [](CheckInput& bad) { bad.edge(0, 1, 4); });
  expect_rejected("edge both ways", [](CheckInput& bad) { bad.edge(1, 0, 4); });
  expect_rejected("epsilon", [](CheckInput& bad) { bad.epsilon = -0.1; });
  expect_rejected("epsilon nan", [](CheckInput& bad) { bad.epsilon = kNan; });
  expect_rejected("threshold", [](CheckInput& bad) { bad.threshold = kInfinity; });
  expect_rejected("resolution", [](CheckInput& bad) { bad.resolution = 0; });
}

TEST(check_survives_failed_allocations) {
  const CheckInput good = path_of_three().merge(0, 1, 4, 0).merge(3, 2, 1, 1);
  int64_t after = 0;
  for (bool failed = true; failed; ++after) {
    failed = false;
    fail_allocation(after);
    try {
      good.run();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    fail_allocation(-1);
  }
  EXPECT(after > 10);
}

}  // namespace
}  // namespace dynhac
