// The clusters at theta: the maximal subtrees all of whose merges have a linkage >= theta.
//
// They depend only on the dirty nodes of a Difference. The atoms are the unchanged subtrees
// directly below these. One whose linkages are all >= theta is within one cluster before and one
// now; one with a smaller linkage contains whole clusters, and they do not change.

#ifndef DYNHAC_WATCH_THETA_RULE_H_
#define DYNHAC_WATCH_THETA_RULE_H_

#include "core/watch/flat_rule.h"

namespace dynhac {

class ThetaRule : public FlatRule {
 public:
  ThetaRule(double theta, double resolution) : theta_(theta), resolution_(resolution) {}

  void start(const NodeStore& nodes, Vec<NodeRef>& roots) override;
  void find(const Difference& difference, const NodeStore& nodes, FlatChange& change) override;

 private:
  struct Visit {
    NodeRef n, root;
  };

  bool joins(const Node& node) const { return node.least_merge * resolution_ >= theta_; }
  template <bool kNow>
  void walk(const Difference& difference, FlatChange& change);

  const double theta_, resolution_;
  Vec<Visit> stack_;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_THETA_RULE_H_
