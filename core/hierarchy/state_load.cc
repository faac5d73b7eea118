// Builds an engine from columns. The order of the checks matters: a handle is checked against its
// range before it is followed, a list is known to end before it is walked, and all of that comes
// before the audit, which relies on valid lists and verifies their contents.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/hierarchy/state.h"

namespace dynhac {

namespace {

constexpr uint32_t kMostSlots = kNone / 2;
constexpr int64_t kMostIds = int64_t{1} << 62;  // so that counters never overflow

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument(what);
}

void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

void expect_ids(Vec<int64_t>& ids, int64_t bound) {
  std::sort(ids.begin(), ids.end());
  expect(std::adjacent_find(ids.begin(), ids.end()) == ids.end(), "nodes: an id appears twice");
  expect(ids.empty() || (ids.front() >= 0 && ids.back() < bound), "nodes: id out of range");
}

}  // namespace

class EngineState::Loader {
 public:
  Loader(const EngineParameters& p, const StateColumns& columns, Poll* poll)
      : columns_(columns),
        poll_(poll),
        pace_(poll),
        engine_(std::make_unique<Engine>(p.epsilon, p.threshold, p.resolution, p.threads)) {}

  std::unique_ptr<Engine> run() {
    const std::span<const int64_t> counts = column<int64_t>("counts");
    expect(counts.size() > state::kCountsBefore, "counts: too few of them");
    const size_t levels = counts.size() - state::kCountsBefore;
    expect(columns_.size() == 2 + std::size(state::kNodeColumns) + levels * state::kLevelColumns,
           "the number of columns does not match the number of levels");
    uint64_t entries = 0;
    for (size_t i = 0; i < levels; ++i) {
      entries += column<uint32_t>(state::level_column(i, "neighbor")).size();
    }
    begin_phase(poll_, phases::kRestoring, 5 * entries);  // every list is read so often
    engine_->version_ = count(counts[0]);
    engine_->nodes_.next_id_ = count(counts[1]);
    engine_->nodes_.next_leaf_ = count(counts[2]);
    load_nodes(handle(counts[3]), levels);
    while (engine_->levels_.size() < levels) {
      engine_->levels_.push_back(std::make_unique<Level>(&engine_->arena_));
    }
    for (index_ = 0; index_ < levels; ++index_) {
      load_slots(handle(counts[state::kCountsBefore + index_]));
      load_lists();
      load_weights();
    }
    expect(levels == 1 || engine_->levels_.back()->alive() > 0, "the topmost level is empty");
    const uint32_t last = handle(counts[4]);
    expect(last == kNone || last + 1 == levels || last + 2 == levels,
           "counts: the last level is not below the topmost one");
    engine_->last_level_.set(last);
    expect(engine_->version_ > 0 || leaves_ == 0, "counts: vertices before the first update");
    load_keys();
    size_t merges = 0;
    for (index_ = 0; index_ < levels; ++index_) merges += link_groups();
    expect(merges == merges_, "merges that belong to no group");
    const std::vector<std::string> wrong = engine_->audit_groups(poll_);
    if (!wrong.empty()) fail(wrong.front());
    if (poll_ != nullptr) poll_->end();
    return std::move(engine_);
  }

 private:
  template <class T>
  std::span<const T> column(const std::string& name) const {
    const auto it = columns_.find(name);
    if (it == columns_.end()) fail(name + " is missing");
    const auto* values = std::get_if<std::span<const T>>(&it->second);
    if (values == nullptr) fail(name + " has another type");
    return *values;
  }
  template <class T>
  std::span<const T> column(const std::string& name, size_t size) const {
    const std::span<const T> values = column<T>(name);
    if (values.size() != size) fail(name + " has another length than the columns of its group");
    return values;
  }
  template <class Record, class T>
  void read(const std::string& name, Vec<Record>& records, T Record::* field) const {
    const std::span<const T> values = column<T>(name, records.size());
    for (size_t i = 0; i < values.size(); ++i) records[i].*field = values[i];
  }

  static int64_t count(int64_t value) {
    expect(value >= 0 && value < kMostIds, "counts: one is out of range");
    return value;
  }
  static uint32_t handle(int64_t value) {
    expect(value >= -1 && value < kNone, "counts: a handle is out of range");
    return value < 0 ? kNone : static_cast<uint32_t>(value);
  }

  // Throws unless the list from `first` on has all `free` slots, each once.
  template <class Next>
  static void expect_free_list(uint32_t first, uint32_t slots, uint32_t free, Next next) {
    uint32_t steps = 0;
    for (uint32_t at = first; at != kNone; at = next(at)) {
      expect(at < slots, "a list of free slots has an entry out of range");
      expect(steps++ < free, "a list of free slots does not end");
    }
    expect(steps == free, "free slots that are in no list");
  }

  // A merge has the size of its children together, so no node is below itself, and none has two
  // parents: what the nodes form is a forest.
  void load_nodes(NodeRef free, size_t levels) {
    NodeStore& store = engine_->nodes_;
    Vec<Node>& nodes = store.nodes;
    const size_t count = column<uint32_t>("nodes/size").size();
    expect(count < kNone, "nodes: too many");
    nodes.resize(count);
    for (const auto& column : state::kNodeColumns) {
      const std::string name = std::string("nodes/") + column.name;
      std::visit([&](auto field) { read(name, nodes, field); }, column.field);
    }
    Vec<uint8_t> has_parent(count, 0);
    Vec<int64_t> leaf_ids, merge_ids;
    for (Node& node : nodes) {
      if (node.size == 0) {
        node = {.left = node.left};
      } else if (node.is_leaf()) {
        expect(node.size == 1 && node.right == kNone && node.similarity == 0 &&
                   node.least_merge == kInfinity,
               "nodes: not a leaf");
        leaf_ids.push_back(node.id);
      } else {
        for (const NodeRef child : {node.left, node.right}) {
          expect(child < count && nodes[child].size > 0, "nodes: a child that does not exist");
          expect(!has_parent[child], "nodes: a child of two parents");
          has_parent[child] = 1;
        }
        const Node &left = nodes[node.left], &right = nodes[node.right];
        expect(size_t{left.size} + right.size == node.size, "nodes: size");
        expect(node.similarity > 0 && std::isfinite(node.similarity), "nodes: similarity");
        expect(node.least_merge == std::min({left.least_merge, right.least_merge, node.similarity}),
               "nodes: least merge");
        expect(size_t{node.level} + 1 < levels, "nodes: level");
        merge_ids.push_back(node.id);
      }
    }
    leaves_ = leaf_ids.size();
    merges_ = merge_ids.size();
    expect_ids(leaf_ids, store.next_leaf_);
    expect_ids(merge_ids, store.next_id_);
    store.free_ = free;
    expect_free_list(free, static_cast<uint32_t>(count),
                     static_cast<uint32_t>(count - leaves_ - merges_), [&](NodeRef n) {
                       expect(nodes[n].size == 0, "nodes: in use and free");
                       return nodes[n].left;
                     });
  }

  void load_slots(Vertex free) {
    const size_t slots = column<uint32_t>(state::level_column(index_, "node")).size();
    expect(slots < kMostSlots, "a level has too many vertices");
    Level& level = this->level();
    level.hot.resize(slots);
    level.role.resize(slots);
    level.cold.resize(slots);
    for (const auto& column : state::kSlotColumns) {
      const std::string name = state::level_column(index_, column.name);
      std::visit([&](auto field) { read(name, state::records(level, field), field); },
                 column.field);
    }
    for (Vertex v = 0; v < slots; ++v) {
      Cold& c = level.cold[v];
      if (c.node == kNone) {
        level.role[v] = Role{};
        c = {.capacity = c.capacity, .used = c.used, .next = c.next};
        continue;
      }
      expect(c.node < engine_->nodes_.slots() && engine_->nodes_[c.node].size > 0,
             "a vertex without a node");
      const Node& cluster = engine_->nodes_[c.node];
      expect(index_ > 0 ? cluster.is_leaf() || cluster.level < index_
                        : cluster.is_leaf() && cluster.left == v && c.first == kNone,
             "a vertex with the node of another");
      level.hot[v].size = cluster.size;
      c.old_node = c.node;
      c.least_merge = cluster.least_merge;
      ++level.alive_;
    }
    // Every vertex has a leaf of its own, so every leaf has its vertex if there are as many.
    expect(index_ > 0 || level.alive() == leaves_, "a leaf without a vertex");
    level.free_ = free;
    expect_free_list(free, level.slots(), level.slots() - level.alive(), [&](Vertex v) {
      expect(!level.lives(v), "a vertex in use and free");
      return level.cold[v].next;
    });
  }

  // The adjacency lists without the weights.
  void load_lists() {
    Level& level = this->level();
    const auto neighbor = column<uint32_t>(state::level_column(index_, "neighbor"));
    const auto mirror = column<uint32_t>(state::level_column(index_, "mirror"), neighbor.size());
    Vec<Vertex> seen(level.slots(), kNone);  // by neighbour: the last list that has it
    size_t at = 0;
    for (Vertex v = 0; v < level.slots(); ++v) {
      Cold& c = level.cold[v];
      if (c.capacity == 0) {
        expect(c.used == 0, "an adjacency list without capacity");
        c.free_slots = kNone;
        continue;
      }
      expect(level.lives(v), "edges of a vertex that does not exist");
      // Lists grow by a quarter, so that none has twice the capacity it uses. The check also keeps
      // a small file from requesting much memory.
      expect(c.used <= neighbor.size() - at && c.used < kMostSlots / 2 && c.used <= c.capacity &&
                 c.capacity <= 2 * c.used + 8 && c.capacity == BlockArena::capacity_for(c.capacity),
             "capacity of an adjacency list");
      pace_.step(8 + 8 * size_t{c.used}, c.used);
      c.block = engine_->arena_.allocate(c.capacity);
      Entry* entries = Level::entries_of(c);
      for (uint32_t p = 0; p < c.used; ++p, ++at) {
        const Vertex y = neighbor[at];
        entries[p] = {y, mirror[at], 0};
        if (y == v) continue;
        expect(y < level.slots() && level.lives(y), "edge to no vertex");
        expect(seen[y] != v, "an edge appears twice");
        seen[y] = v;
        ++c.live;
      }
      expect_free_list(c.free_slots, c.used, c.used - c.live, [&](uint32_t p) {
        expect(entries[p].neighbour == v, "an entry in use and free");
        return entries[p].mirror;
      });
    }
    expect(at == neighbor.size(), "adjacency entries without a vertex");
  }

  // The entry of every edge at its smaller end leads to a distinct entry at its larger end. If
  // there are as many entries of one kind as of the other, all of them have their mirror.
  void load_weights() {
    Level& level = this->level();
    const auto weight = column<int64_t>(state::level_column(index_, "weight"));
    size_t at = 0, ends = 0;
    Weight total = 0;
    for (Vertex v = 0; v < level.slots(); ++v) {
      const Cold& c = level.cold[v];
      pace_.step(8 + 8 * size_t{c.used}, c.used);
      ends += c.live;
      for (uint32_t p = 0; p < c.used; ++p) {
        Entry& e = Level::entries_of(c)[p];
        if (e.neighbour <= v) continue;
        const Cold& other = level.cold[e.neighbour];
        expect(e.mirror < other.used, "mirror");
        Entry& theirs = Level::entries_of(other)[e.mirror];
        expect(theirs.neighbour == v && theirs.mirror == p, "mirror");
        expect(at < weight.size(), "fewer weights than edges");
        const Weight w = weight[at++];
        expect(w > 0 && w <= kLargestTotal - total, "weight out of range");
        total += w;
        e.weight = theirs.weight = w;
      }
    }
    expect(2 * at == ends, "mirror");
    expect(at == weight.size(), "more weights than edges");
    if (index_ == 0) engine_->total_ = total;
  }

  void load_keys() {
    const Level& level = *engine_->levels_[0];
    const auto keys = column<int64_t>("keys", level.slots());
    engine_->keys_.assign(keys.begin(), keys.end());
    engine_->ids_.reserve(level.alive());
    for (Vertex v = 0; v < level.slots(); ++v) {
      if (level.lives(v)) {
        expect(engine_->ids_.insert(keys[v], v).second, "keys: one appears twice");
        pace_.step(16);
      }
    }
  }

  // Links the groups of a level, and computes the heaviest edges of vertices alone in their group.
  // Returns the number of merges.
  size_t link_groups() {
    Level& low = level();
    Level* high =
        index_ + 1 < engine_->levels_.size() ? engine_->levels_[index_ + 1].get() : nullptr;
    size_t grouped = 0, members = 0, merges = 0;
    for (Vertex v = 0; v < low.slots(); ++v) {
      if (!low.lives(v)) continue;
      Role& r = low.role[v];
      pace_.step(8 + 4 * size_t{low.cold[v].used}, low.cold[v].used);
      if (r.image == kNone) {
        expect(low.cold[v].next == kNone, "a finished vertex in a group");
        continue;
      }
      expect(high != nullptr && r.image < high->slots() && high->lives(r.image),
             "image does not exist");
      ++grouped;
      if (r.hi == kInfinity) {
        const Heaviest found = low.heaviest(v);
        r.wmax = found.wmax;
        r.best = found.best;
      }
    }
    for (Vertex g = 0; high != nullptr && g < high->slots(); ++g) {
      if (!high->lives(g)) continue;
      Cold& image = high->cold[g];
      for (Vertex v = image.first; v != kNone; v = low.cold[v].next) {
        expect(v < low.slots() && low.lives(v) && low.role[v].image == g,
               "member with another image");
        expect(members++ < grouped, "members of a group do not end");
        ++image.count;
      }
      expect(image.count > 0, "image without members");
      expect(image.count == 1 || engine_->nodes_[image.node].level == index_,
             "node of a merge of another level");
      merges += image.count - 1;
    }
    expect(members == grouped, "a vertex in no group");
    return merges;
  }

  Level& level() { return *engine_->levels_[index_]; }

  const StateColumns& columns_;
  Poll* const poll_;
  Pace pace_;
  std::unique_ptr<Engine> engine_;
  size_t index_ = 0;  // of the level being loaded
  size_t leaves_ = 0, merges_ = 0;
};

std::unique_ptr<Engine> EngineState::load(const EngineParameters& parameters,
                                          const StateColumns& columns, Poll* poll) {
  const HugePages huge(true);
  return Loader(parameters, columns, poll).run();
}

}  // namespace dynhac
