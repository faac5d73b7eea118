// The input of check(), built edge by edge and merge by merge.

#ifndef DYNHAC_TESTS_CHECK_INPUT_H_
#define DYNHAC_TESTS_CHECK_INPUT_H_

#include <cstdint>
#include <vector>

#include "core/check/check.h"

namespace dynhac {

struct CheckInput {
  int64_t n;
  std::vector<int64_t> u, v, w, children;
  std::vector<double> similarity;
  std::vector<int32_t> level;
  double epsilon = 0, threshold = 0, resolution = 1;

  explicit CheckInput(int64_t leaves) : n(leaves) {}

  CheckInput& edge(int64_t a, int64_t b, int64_t weight) {
    u.push_back(a);
    v.push_back(b);
    w.push_back(weight);
    return *this;
  }

  CheckInput& merge(int64_t a, int64_t b, double its_similarity, int32_t its_level) {
    children.insert(children.end(), {a, b});
    similarity.push_back(its_similarity);
    level.push_back(its_level);
    return *this;
  }

  // The node that the last merge has made.
  int64_t last_node() const { return n + static_cast<int64_t>(level.size()) - 1; }

  CheckResult run() const {
    return check(n, u, v, w, children, similarity, level, epsilon, threshold, resolution);
  }
};

}  // namespace dynhac

#endif  // DYNHAC_TESTS_CHECK_INPUT_H_
