// The nodes of the dendrogram, leaves and merges, with transactions.
//
// A merge keeps its slot and its public id for as long as the cluster or a successor of it exists;
// changes overwrite it in place. As in Level, the first change of a record within a
// transaction saves a copy and slots are freed only by commit(). So at the end, the saved copies
// and the present records together tell what the update did.
//
// Invariants: size == 0 iff the slot is not in use. A leaf has level == kNone, left == its vertex
// on level 0; its id is its rank in the order of insertion. A merge has level = the level of the
// group that made it, and its children's sizes add up to its own.

#ifndef DYNHAC_HIERARCHY_NODE_STORE_H_
#define DYNHAC_HIERARCHY_NODE_STORE_H_

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/hierarchy/types.h"

namespace dynhac {

struct Node {
  int64_t id = -1;
  double similarity = 0;           // linkage of the merge
  double least_merge = kInfinity;  // smallest linkage in the subtree
  NodeRef left = kNone, right = kNone;
  uint32_t size = 0;
  uint32_t level = kNone;
  uint32_t epoch = 0;
  uint32_t ref = kNone;  // scratch of an update: its index in a bag, else kNone

  bool is_leaf() const { return level == kNone; }
};

class NodeStore {
 public:
  Vec<Node> nodes;

  const Node& operator[](NodeRef n) const { return nodes[n]; }
  uint32_t slots() const { return static_cast<uint32_t>(nodes.size()); }
  size_t memory() const { return nodes.capacity() * sizeof(Node); }
  void prefetch(NodeRef n) const { __builtin_prefetch(nodes.data() + n); }

  // The roots of the trees, ascending.
  Vec<NodeRef> roots() const {
    Vec<uint8_t> has_parent(slots(), 0);
    for (const Node& node : nodes) {
      if (node.size > 0 && !node.is_leaf()) has_parent[node.left] = has_parent[node.right] = 1;
    }
    Vec<NodeRef> found;
    for (NodeRef n = 0; n < slots(); ++n) {
      if (nodes[n].size > 0 && !has_parent[n]) found.push_back(n);
    }
    return found;
  }

  // Calls visit(leaf) for the leaves below n, from left to right. `stack` is a buffer.
  template <class Visit>
  void for_each_leaf(NodeRef n, Vec<NodeRef>& stack, Visit visit) const {
    stack.assign(1, n);
    while (!stack.empty()) {
      const Node& node = nodes[stack.back()];
      stack.pop_back();
      if (node.is_leaf()) {
        visit(node);
      } else {
        stack.push_back(node.right);
        stack.push_back(node.left);
      }
    }
  }

  // To be called before epochs restart from 1.
  void forget_epochs() noexcept {
    for (Node& node : nodes) node.epoch = 0;
  }

  // Scratch, outside of the transaction.
  uint32_t& ref(NodeRef n) { return nodes[n].ref; }
  void forget_refs() noexcept {
    for (Node& node : nodes) node.ref = kNone;
  }

  void begin(uint32_t epoch) {
    epoch_ = epoch;
    slots_before_ = slots();
    free_before_ = free_;
    next_id_before_ = next_id_;
    next_leaf_before_ = next_leaf_;
  }

  // `count` nodes in use, whose records are to be written.
  void create_many(size_t count, Workers& workers, NewSlots& made) {
    made.reused.clear();
    if (count == 0) return;
    for (; count > 0 && free_ != kNone; --count) made.reused.push_back(create());
    made.first = slots();
    const size_t size = made.first + count;
    make_room(nodes, size);
    nodes.resize(size);
    workers.for_ranges(count, size_t{1} << 13, [&](size_t begin, size_t end, uint32_t) {
      for (size_t n = made.first + begin; n < made.first + end; ++n) nodes[n].epoch = epoch_;
    });
  }
  // The first of `count` ids.
  int64_t take_leaf_ids(size_t count) { return std::exchange(next_leaf_, next_leaf_ + count); }
  int64_t take_merge_ids(size_t count) { return std::exchange(next_id_, next_id_ + count); }

  Node& change(NodeRef n) { return change(n, saved_); }

  // Where to save records: several threads may change nodes at once, each with a journal of its
  // own. After provide() there are journals 0..count - 1; gather() closes them, in this order.
  struct Saved {
    NodeRef n;
    Node node;
  };
  using Journal = Vec<Saved>;
  void provide(size_t count) {
    if (beside_.size() < count) beside_.resize(count);
  }
  Journal& own_journal() { return saved_; }
  Journal& journal(size_t i) { return beside_[i]; }
  void gather() {
    earlier_.reserve(earlier_.size() + 1 + beside_.size());
    earlier_.push_back(std::exchange(saved_, {}));
    std::move(beside_.begin(), beside_.end(), std::back_inserter(earlier_));
    beside_.clear();
  }
  Node& change(NodeRef n, Journal& journal) {
    if (nodes[n].epoch != epoch_) {
      journal.push_back({n, nodes[n]});
      nodes[n].epoch = epoch_;
    }
    return nodes[n];
  }

  void discard(NodeRef n) {
    discarded_.push_back(n);
    change(n).size = 0;
  }

  // Calls report(before, now) for every merge whose slot was there before and that was created,
  // changed or discarded; size 0 means that it did not or does not exist.
  template <class Report>
  void differences(Report report) const {
    for_saved([&](const Saved& saved) {
      const Node& now = nodes[saved.n];
      if ((saved.node.size > 0 && saved.node.is_leaf()) || (now.size > 0 && now.is_leaf())) return;
      if (saved.node.size > 0 || now.size > 0) report(saved.node, now);
    });
  }
  // The records in new slots.
  std::span<const Node> added() const { return std::span(nodes).subspan(slots_before_); }

  // Calls visit(node, before) for every node, leaf or merge, whose record is new or was saved.
  template <class Visit>
  void touched(Visit visit) const {
    for_saved([&](const Saved& saved) { visit(saved.n, saved.node); });
    for (NodeRef n = slots_before_; n < slots(); ++n) visit(n, Node{});
  }

  void commit() noexcept {
    for (const NodeRef n : discarded_) {
      const uint32_t epoch = nodes[n].epoch;
      nodes[n] = Node{};
      nodes[n].epoch = epoch;
      nodes[n].left = free_;
      free_ = n;
    }
    close();
  }

  void rollback() noexcept {
    for (const Journal& journal : beside_) restore(journal);
    for (const Journal& journal : earlier_) restore(journal);
    restore(saved_);
    nodes.resize(slots_before_);
    free_ = free_before_;
    next_id_ = next_id_before_;
    next_leaf_ = next_leaf_before_;
    close();
  }

 private:
  friend class EngineState;  // saves and restores what an update leaves behind

  NodeRef create() {
    NodeRef n = free_;
    if (n != kNone) {
      change(n);
      free_ = nodes[n].left;
      nodes[n] = Node{};
    } else {
      n = slots();
      nodes.push_back(Node{});
    }
    nodes[n].epoch = epoch_;
    return n;
  }

  template <class Visit>
  void for_saved(Visit visit) const {
    for (const Journal& journal : earlier_) {
      for (const Saved& saved : journal) visit(saved);
    }
    for (const Saved& saved : saved_) visit(saved);
  }

  void restore(const Journal& journal) noexcept {
    for (const Saved& saved : journal) nodes[saved.n] = saved.node;
  }

  void close() noexcept {
    recycle(saved_);
    earlier_.clear();
    beside_.clear();
    recycle(discarded_);
  }

  NodeRef free_ = kNone;  // slots not in use, linked through Node::left
  int64_t next_id_ = 0, next_leaf_ = 0;
  // The transaction.
  uint32_t epoch_ = 0;
  uint32_t slots_before_ = 0;
  NodeRef free_before_ = kNone;
  int64_t next_id_before_ = 0, next_leaf_before_ = 0;
  // In the order in which they were written; see Level.
  Vec<Journal> earlier_;
  Journal saved_;
  Vec<Journal> beside_;
  Vec<NodeRef> discarded_;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_NODE_STORE_H_
