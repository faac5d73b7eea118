// Builds an engine from columns. The order of the checks matters: a handle is checked against its
// range before it is followed, a list is known to end before it is walked, and all of that comes
// before the audit, which relies on valid lists and verifies their contents.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "core/base/parallel.h"
#include "core/base/partition.h"
#include "core/hierarchy/state.h"

namespace dynhac {

namespace {

constexpr uint32_t kMostSlots = kNone / 2;
constexpr size_t kRecords = size_t{1} << 14, kVertices = size_t{1} << 12;  // in a range
constexpr int64_t kMostIds = int64_t{1} << 62;  // so that counters never overflow

[[noreturn]] void fail(const std::string& what) {
  throw std::invalid_argument(what);
}

void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

}  // namespace

class EngineState::Loader {
 public:
  Loader(const EngineParameters& p, const StateColumns& columns, Poll* poll)
      : columns_(columns),
        poll_(poll),
        engine_(std::make_unique<Engine>(p.epsilon, p.threshold, p.resolution, p.threads)),
        workers_(p.threads),
        session_(workers_) {}

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
    engine_->arena_.provide(workers_.hands());
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
    const std::vector<std::string> wrong = engine_->audit_groups(workers_, poll_);
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
  void read(const std::string& name, Vec<Record>& records, T Record::* field) {
    const std::span<const T> values = column<T>(name, records.size());
    workers_.for_ranges(values.size(), kRecords, [&](size_t begin, size_t end, uint32_t) {
      for (size_t i = begin; i < end; ++i) records[i].*field = values[i];
    });
  }

  // Calls body(begin, end, hand, range) for ranges of the vertices of a level, each of which reads
  // the adjacency lists of its vertices once.
  template <class Body>
  void for_vertices(uint32_t count, Body body) {
    workers_.for_ranges_numbered(
        count, kVertices, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
          const uint64_t read =
              body(static_cast<Vertex>(begin), static_cast<Vertex>(end), hand, range);
          const uint64_t done = done_.fetch_add(read, std::memory_order_relaxed) + read;
          if (Workers::is_caller(hand) && poll_ != nullptr) poll_->reach(done);
        });
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
    const size_t ranges = Workers::ranges(count, kRecords);
    Vec<Vec<int64_t>> leaf_ids(ranges), merge_ids(ranges);
    workers_.for_ranges_numbered(
        count, kRecords, [&](size_t range, size_t begin, size_t end, uint32_t) {
          for (size_t n = begin; n < end; ++n) {
            const Node& node = nodes[n];
            if (node.size == 0) continue;
            if (!node.is_leaf()) check_merge(node, nodes, has_parent, levels);
            expect(!node.is_leaf() || (node.size == 1 && node.right == kNone &&
                                       node.similarity == 0 && node.least_merge == kInfinity),
                   "nodes: not a leaf");
            (node.is_leaf() ? leaf_ids : merge_ids)[range].push_back(node.id);
          }
        });
    workers_.for_ranges(count, kRecords, [&](size_t begin, size_t end, uint32_t) {
      for (size_t n = begin; n < end; ++n) {
        if (nodes[n].size == 0) nodes[n] = {.left = nodes[n].left};
      }
    });
    leaves_ = expect_ids(leaf_ids, store.next_leaf_);
    merges_ = expect_ids(merge_ids, store.next_id_);
    store.free_ = free;
    expect_free_list(free, static_cast<uint32_t>(count),
                     static_cast<uint32_t>(count - leaves_ - merges_), [&](NodeRef n) {
                       expect(nodes[n].size == 0, "nodes: in use and free");
                       return nodes[n].left;
                     });
  }

  static void check_merge(const Node& node, const Vec<Node>& nodes, Vec<uint8_t>& has_parent,
                          size_t levels) {
    for (const NodeRef child : {node.left, node.right}) {
      expect(child < nodes.size() && nodes[child].size > 0, "nodes: a child that does not exist");
      expect(__atomic_exchange_n(&has_parent[child], uint8_t{1}, __ATOMIC_RELAXED) == 0,
             "nodes: a child of two parents");
    }
    const Node &left = nodes[node.left], &right = nodes[node.right];
    expect(size_t{left.size} + right.size == node.size, "nodes: size");
    expect(node.similarity > 0 && std::isfinite(node.similarity), "nodes: similarity");
    expect(node.least_merge == std::min({left.least_merge, right.least_merge, node.similarity}),
           "nodes: least merge");
    expect(size_t{node.level} + 1 < levels, "nodes: level");
  }

  // The ids are distinct and in range. Returns how many they are.
  size_t expect_ids(const Vec<Vec<int64_t>>& ids, int64_t bound) {
    Vec<int64_t> all;
    append_all(workers_, all, ids);
    if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
    expect(std::adjacent_find(all.begin(), all.end()) == all.end(), "nodes: an id appears twice");
    expect(all.empty() || (all.front() >= 0 && all.back() < bound), "nodes: id out of range");
    return all.size();
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
    std::atomic<uint32_t> alive{0};
    workers_.for_ranges(slots, kRecords, [&](size_t begin, size_t end, uint32_t) {
      uint32_t count = 0;
      for (size_t v = begin; v < end; ++v) {
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
        ++count;
      }
      alive += count;
    });
    level.alive_ = alive;
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
    const size_t ranges = Workers::ranges(level.slots(), kVertices);
    Vec<size_t> begins(ranges + 1, 0);  // of the entries of a range
    workers_.for_ranges_numbered(level.slots(), kVertices,
                                 [&](size_t range, size_t begin, size_t end, uint32_t) {
                                   size_t entries = 0;
                                   for (size_t v = begin; v < end; ++v) {
                                     entries += level.cold[v].used;
                                   }
                                   begins[range + 1] = entries;
                                 });
    for (size_t range = 0; range < ranges; ++range) begins[range + 1] += begins[range];
    expect(begins[ranges] == neighbor.size(), "other entries than the adjacency lists have");
    larger_.assign(ranges + 1, 0);
    Vec<Vec<Vertex>> seen(workers_.hands());  // by neighbour: the last list that has it
    for_vertices(level.slots(), [&](Vertex begin, Vertex end, uint32_t hand, size_t range) {
      seen[hand].resize(level.slots(), kNone);
      size_t larger = 0;
      size_t at = begins[range];
      for (Vertex v = begin; v < end; at += level.cold[v++].used) {
        larger += load_list(v, neighbor.subspan(at), mirror.subspan(at), seen[hand], hand);
      }
      larger_[range + 1] = larger;
      return begins[range + 1] - begins[range];
    });
    for (size_t range = 0; range < ranges; ++range) larger_[range + 1] += larger_[range];
  }

  // The columns begin with the list of this vertex. Returns how many of its neighbours are larger
  // than the vertex.
  size_t load_list(Vertex v, std::span<const uint32_t> neighbor, std::span<const uint32_t> mirror,
                   Vec<Vertex>& seen, uint32_t hand) {
    Level& level = this->level();
    Cold& c = level.cold[v];
    if (c.capacity == 0) {
      expect(c.used == 0, "an adjacency list without capacity");
      c.free_slots = kNone;
      return 0;
    }
    expect(level.lives(v), "edges of a vertex that does not exist");
    // Lists grow by a quarter, so that none has twice the capacity it uses. The check also keeps a
    // small file from requesting much memory.
    expect(c.used < kMostSlots / 2 && c.used <= c.capacity && c.capacity <= 2 * c.used + 8 &&
               c.capacity == BlockArena::capacity_for(c.capacity),
           "capacity of an adjacency list");
    c.block = engine_->arena_.allocate(c.capacity, hand);
    Entry* entries = Level::entries_of(c);
    size_t larger = 0;
    for (uint32_t p = 0; p < c.used; ++p) {
      const Vertex y = neighbor[p];
      entries[p] = {y, mirror[p], 0};
      if (y == v) continue;
      expect(y < level.slots() && level.lives(y), "edge to no vertex");
      expect(seen[y] != v, "an edge appears twice");
      seen[y] = v;
      larger += y > v;
      ++c.live;
    }
    expect_free_list(c.free_slots, c.used, c.used - c.live, [&](uint32_t p) {
      expect(entries[p].neighbour == v, "an entry in use and free");
      return entries[p].mirror;
    });
    return larger;
  }

  // The entry of every edge at its smaller end leads to a distinct entry at its larger end. If
  // there are as many entries of one kind as of the other, all of them have their mirror.
  void load_weights() {
    Level& level = this->level();
    const auto weight = column<int64_t>(state::level_column(index_, "weight"));
    expect(larger_.back() == weight.size(), "other weights than edges");
    std::atomic<size_t> ends{0};
    Vec<Weight> totals(larger_.size(), 0);  // by range
    for_vertices(level.slots(), [&](Vertex begin, Vertex end, uint32_t, size_t range) {
      size_t at = larger_[range], live = 0;
      uint64_t read = 0;
      for (Vertex v = begin; v < end; ++v) {
        const Cold& c = level.cold[v];
        live += c.live;
        read += c.used;
        for (uint32_t p = 0; p < c.used; ++p) {
          Entry& e = Level::entries_of(c)[p];
          if (e.neighbour <= v) continue;
          const Cold& other = level.cold[e.neighbour];
          expect(e.mirror < other.used, "mirror");
          Entry& theirs = Level::entries_of(other)[e.mirror];
          expect(theirs.neighbour == v && theirs.mirror == p, "mirror");
          const Weight w = weight[at++];
          expect(w > 0 && w <= kLargestTotal - totals[range], "weight out of range");
          totals[range] += w;
          e.weight = theirs.weight = w;
        }
      }
      ends += live;
      return read;
    });
    expect(2 * weight.size() == ends, "mirror");
    Weight total = 0;
    for (const Weight sum : totals) {
      expect(sum <= kLargestTotal - total, "weight out of range");
      total += sum;
    }
    if (index_ == 0) engine_->total_ = total;
  }

  void load_keys() {
    const Level& level = *engine_->levels_[0];
    const auto keys = column<int64_t>("keys", level.slots());
    engine_->keys_.assign(keys.begin(), keys.end());
    Vec<Vertex> held;
    Vec<int64_t> own;
    held.reserve(level.alive());
    own.reserve(level.alive());
    for (Vertex v = 0; v < level.slots(); ++v) {
      if (!level.lives(v)) continue;
      held.push_back(v);
      own.push_back(keys[v]);
    }
    expect(engine_->ids_.insert_new(workers_, own, [&](size_t i) { return held[i]; }),
           "keys: one appears twice");
  }

  // Links the groups of a level, and computes the heaviest edges of vertices alone in their group.
  // Returns the number of merges.
  size_t link_groups() {
    Level& low = level();
    Level* high =
        index_ + 1 < engine_->levels_.size() ? engine_->levels_[index_ + 1].get() : nullptr;
    std::atomic<size_t> grouped{0}, members{0};
    for_vertices(low.slots(), [&](Vertex begin, Vertex end, uint32_t, size_t) {
      uint64_t read = 0;
      size_t count = 0;
      for (Vertex v = begin; v < end; ++v) {
        if (!low.lives(v)) continue;
        Role& r = low.role[v];
        read += low.cold[v].used;
        if (r.image == kNone) {
          expect(low.cold[v].next == kNone, "a finished vertex in a group");
          continue;
        }
        expect(high != nullptr && r.image < high->slots() && high->lives(r.image),
               "image does not exist");
        ++count;
        if (r.hi == kInfinity) {
          const Heaviest found = low.heaviest(v);
          r.wmax = found.wmax;
          r.best = found.best;
        }
      }
      grouped += count;
      return read;
    });
    if (high == nullptr) return 0;
    workers_.for_ranges(high->slots(), kVertices, [&](size_t begin, size_t end, uint32_t) {
      size_t count = 0;
      for (size_t g = begin; g < end; ++g) {
        if (high->lives(static_cast<Vertex>(g))) count += link_group(low, *high, g);
      }
      members += count;
    });
    expect(members == grouped, "a vertex in no group");
    return members - high->alive();
  }

  // Returns the number of members. There are not more of them than leaves, and no vertex is twice
  // in a list that ends.
  size_t link_group(const Level& low, Level& high, size_t g) {
    Cold& image = high.cold[g];
    for (Vertex v = image.first; v != kNone; v = low.cold[v].next) {
      expect(v < low.slots() && low.lives(v) && low.role[v].image == g,
             "member with another image");
      expect(image.count++ < high.hot[g].size, "members of a group do not end");
    }
    expect(image.count > 0, "image without members");
    expect(image.count == 1 || engine_->nodes_[image.node].level == index_,
           "node of a merge of another level");
    return image.count;
  }

  Level& level() { return *engine_->levels_[index_]; }

  const StateColumns& columns_;
  Poll* const poll_;
  std::unique_ptr<Engine> engine_;
  Workers workers_;
  const Workers::Session session_;
  std::atomic<uint64_t> done_{0};  // entries that were read
  size_t index_ = 0;               // of the level being loaded
  Vec<size_t> larger_;             // by range: of neighbours larger than their vertex, before it
  size_t leaves_ = 0, merges_ = 0;
};

std::unique_ptr<Engine> EngineState::load(const EngineParameters& parameters,
                                          const StateColumns& columns, Poll* poll) {
  const HugePages huge(true);
  return Loader(parameters, columns, poll).run();
}

}  // namespace dynhac
