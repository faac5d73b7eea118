// The update of one level: applies changes of the level's graph, keeps every group whose merges are
// still good, reruns the others, and computes the resulting changes of the next level.
//
// The steps of run(), each a member function:
//   apply      changes the weights and vertices of the level (level_update.cc)
//   check      compares linkages that are new or have grown with the certificates: a group in
//              conflict must be rerun; vertices alone in their group whose heaviest edge may have
//              changed are listed
//   search     the listed vertices, and new ones, try to join their heaviest neighbour
//   regroup    groups to rerun form bags, and every bag is run (level_bags.cc); the new groups get
//              images, their merges become dendrogram nodes (level_adopt.cc); vertices left alone
//              try once more to join a neighbour
//   lift       turns moves of vertices between groups into weight changes between images
//              (level_lift.cc)
// On the last level, check and search find whole components instead (level_components.cc).
// Between the steps LookAhead prefetches what the next level will read.
//
// Edges of the next level are sums over edges of this one, in exact integers. So changes are passed
// up as differences: a changed weight adds its difference to the edge between the old images of its
// ends; an edge with an end that moved is subtracted from the edge between the old images and added
// to the one between the new images. Unchanged edges are not visited.
//
// A cluster that changes stays the same vertex: its size, node and least merge are overwritten, and
// it is listed in LevelChanges::changed so that its group is rerun.

#ifndef DYNHAC_HIERARCHY_LEVEL_UPDATE_H_
#define DYNHAC_HIERARCHY_LEVEL_UPDATE_H_

#include <span>
#include <utility>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/progress.h"
#include "core/hierarchy/group_run.h"
#include "core/hierarchy/last_level.h"
#include "core/hierarchy/level.h"
#include "core/hierarchy/look_ahead.h"
#include "core/hierarchy/node_store.h"
#include "core/hierarchy/types.h"
#include "core/watch/overlap.h"

namespace dynhac {

struct Delta {
  Delta() noexcept {}  // not initialised: there may be very many of them
  Delta(Vertex a, Vertex b, Weight w) : a(a), b(b), w(w) {}

  Vertex a, b;
  Weight w;
};

struct Changed {
  Vertex v;
  uint32_t old_size;
};

// The changes that a level must apply.
struct LevelChanges {
  Vec<Vertex> removed;  // they still have their edges
  Vec<Vertex> created;  // they have no edges yet
  Vec<Changed> changed;
  // Differences of weights. A pair may be listed more than once, and ends may be removed vertices.
  Vec<Delta> deltas;
  // Edges of created vertices, every pair once, those with the same `a` in succession.
  Vec<Delta> fresh;

  bool empty() const {
    return removed.empty() && created.empty() && changed.empty() && deltas.empty() && fresh.empty();
  }
  void clear();
};

struct Counters {
  int64_t levels = 0, groups_rerun = 0, vertices_rerun = 0, edges_rerun = 0, edges_changed = 0;

  bool operator==(const Counters&) const = default;
};

class LevelUpdate {
 public:
  LevelUpdate(const Rule& rule, NodeStore& nodes, Workers& workers)
      : rule_(rule),
        exact_(rule.exact()),
        nodes_(nodes),
        workers_(workers),
        ahead_(nodes),
        runs_(workers.hands()),
        sums_(workers.hands()),
        entry_at_(workers.hands()),
        wanted_(workers.hands()),
        scratch_(workers.hands()) {}

  // To be called before the levels of an update. The phase of the poll is kBuilding.
  void begin(Poll* poll);

  // For the progress of the phase: how much was done before the next level, and is to do on it.
  void expect_work(uint64_t from, uint64_t todo) {
    level_from_ = from;
    level_todo_ = todo;
    level_work_ = 0;
  }

  // Applies `in` to `low`, which is level `index`, and writes the changes of `high`, the next
  // level, to `out`. Both levels are in a transaction. `top` is the level above them, or nullptr.
  // Consumes `in`.
  void run(uint32_t index, LevelKind kind, Level& low, Level& high, const Level* top,
           LevelChanges& in, LevelChanges& out);

  // After an exception: discards the update in progress.
  void reset() noexcept;

  // Of the update.
  Counters counters() const;

 private:
  // Cold::flags
  static constexpr uint8_t kListed = 1;  // in searching_: search() makes its best and wmax exact
  static constexpr uint8_t kKnown = 2;   // Role::wmax is exact although it is in a larger group
  static constexpr uint8_t kMoved = 4;   // in moved_

  struct Element {  // a group or a vertex without one, as part of a future bag
    Vertex first;   // its first member
    uint32_t parent, count;
    uint32_t next, tail;  // in the same bag
    bool dirty;
  };
  struct Candidate {
    double l;
    uint64_t rank;
    uint32_t from, to;  // vertices, then their elements
    bool operator<(const Candidate& o) const {
      if (l != o.l) return l > o.l;
      return rank != o.rank ? rank > o.rank : from < o.from;  // both ends may propose it
    }
  };
  enum class Finding : uint8_t { kList, kMark };
  enum class Kind : uint8_t { kSingle, kSame, kOther };  // see level_adopt.cc
  struct Bag {
    uint32_t members, members_end;  // in members_
    uint32_t images, images_end;    // in images_: of the groups that went into it
    uint32_t old, old_end;          // in old_merges_
    uint32_t merged;                // number of merges, from merges_[members] on
    uint32_t groups;                // from groups_[members] on
    Kind kind;
  };
  struct Moved {
    Vertex v, old_image;
  };
  struct Sums {  // accumulates weights per image
    Vec<Weight> weight;
    Vec<Vertex> touched;
    void add(Vertex image, Weight w) {
      if (weight[image] == 0) touched.push_back(image);
      weight[image] += w;
    }
    // Calls write(image, sum) for every sum that is not 0, and clears the sums.
    template <class Write>
    void flush(Write write) {
      for (const Vertex image : touched) {
        if (weight[image] != 0) write(image, weight[image]);
        weight[image] = 0;  // an image may be listed twice, if its sum was 0 in between
      }
      touched.clear();
    }
  };

  struct DeltasOf {  // of one vertex: a range of grouped_, which begins where the last one ends
    Vertex a;
    uint32_t end;
  };

  struct Group {
    uint32_t first, count;  // members, numbered within the bag, linked through group_next_
    uint32_t ref;           // its top
    uint32_t size;
    uint32_t image_index;  // in images_, of the image that it takes over; or kNone
    bool finished;
  };

  struct Scratch {  // buffers for one bag
    Vec<uint32_t> group_of, group_last, ref_group, predecessor, old_remainder;
    Vec<uint8_t> old_used, image_taken, leaves_changed;
    Vec<Overlap> overlaps;  // of images_ and groups_
    Vec<std::pair<uint64_t, uint32_t>> old_pairs;
  };
  // What the adoption of a range of bags takes, and no longer needs.
  struct Adopted {
    uint32_t nodes = 0, images = 0;  // to create; then the next one to use
    Vec<Vertex> dropped;             // images
    Vec<NodeRef> unused;             // nodes
    void clear() {
      nodes = images = 0;
      dropped.clear();
      unused.clear();
    }
  };
  struct Adoption {
    Scratch& scratch;
    Adopted& adopted;
    Vec<Moved>& moved;
    Vec<Vertex>& listed;
    Vec<Changed>& changed;
    NodeStore::Journal& journal;
    uint32_t hand;
  };

  // level_update.cc
  Vertex likely_changed() const;
  void apply_removals();
  void apply_deltas();
  void find_positions(size_t begin, size_t end);
  void index_entries(Vertex a, bool clear);
  void prefetch_ahead(std::span<const Entry> entries, size_t p) const;
  void apply_delta(const Delta& d, uint32_t at_a);
  void pass_up(Vertex a, Vertex b, Weight difference);
  void flush_up(Vertex a);
  bool loses(Vertex v, Vertex neighbour) const {  // whether v is to be listed if that edge goes
    return kind_.last || (low_->is_alone(v) && low_->role[v].best == neighbour);
  }
  void lost(Vertex v, Vertex neighbour) {
    if (loses(v, neighbour)) list(v);
  }
  void check_changed();
  void renew();
  template <class Check>
  void for_findings(size_t count, size_t range_size, Check check);
  template <class Found>
  void check_end(Vertex v, Vertex neighbour, double l, Found found) const;
  void list(Vertex v);
  void list_created();
  void search(size_t from);
  void search_many(std::span<const Vertex> listed, bool left_alone);
  void find_heaviest(Vertex v, uint32_t hand);
  void renew_heaviest(Vertex v, uint32_t hand);
  void want_heaviest_of(Vertex v, uint32_t hand);
  void propose(Vertex v, bool left_alone, Vec<Candidate>& candidates, Vec<Element>& elements);
  // level_deltas.cc
  void sum_deltas();
  struct Applied;
  void apply_many_removals();
  void apply_many_deltas();
  void remove_in_range(size_t begin, size_t end, uint32_t hand, Applied& applied);
  void apply_in_bucket(std::span<Delta> deltas, uint32_t hand, Applied& applied);
  void find_positions(std::span<const Delta> deltas, uint32_t hand, uint32_t* positions);
  void take_over(Vec<Applied>& applied);
  void drop_entries(const Vec<Applied>& applied);
  // level_edges.cc
  void apply_fresh();
  void add_edges(const Vec<Delta>& edges);
  void add_few_edges(const Vec<Delta>& edges);
  void add_many_edges(const Vec<Delta>& edges);
  // level_bags.cc
  uint32_t element(Vertex v);
  uint32_t find(uint32_t e);
  uint32_t unite(uint32_t a, uint32_t b);
  void mark(Vertex v) { elements_[find(element(v))].dirty = true; }
  void append_elements(const Vec<Vec<Element>>& lists);
  void join_partners();
  void join(std::span<Candidate> candidates);
  void join_in_parallel();
  void find_roots(Buffer<uint32_t>& up);
  bool form_bags();
  void form_many_bags();
  void collect_bags(size_t begin, size_t end, Vec<Bag>& bags, Vec<Vertex>& members,
                    Vec<Vertex>& images) const;
  void collect_old_merges(Bag& bag, Vec<OldMerge>& merges);
  void run_bags();
  void run_bags(size_t begin, size_t end, uint32_t hand);
  void run_bag(Bag& bag, GroupRun& run);
  // level_components.cc
  void find_components(bool all);
  void run_component(Bag& bag, uint32_t hand);
  // level_adopt.cc
  void adopt_bags();
  void adopt_few_bags();
  void adopt_many_bags();
  void create_new(uint32_t nodes, uint32_t images);
  void drop_old(const Adopted& adopted);
  void plan(Bag& bag, Adoption& a);
  bool plan_single(Bag& bag, Adoption& a);
  bool plan_same(Bag& bag);
  void form_groups(Bag& bag, Scratch& s);
  void match_merges(const Bag& bag, Scratch& s);
  void assign_images(const Bag& bag, Scratch& s);
  void write(const Bag& bag, Adoption& a);
  void write_single(const Bag& bag, Adoption& a);
  void write_same(const Bag& bag, Adoption& a);
  void write_nodes(const Bag& bag, Adoption& a);
  Vertex write_image(const Group& group, NodeRef node, double least_merge, Vertex first,
                     bool other_leaves, Adoption& a);
  bool has_other_leaves(Vertex v) const;
  void write_member(Vertex v, Vertex image, Vertex next, const MemberResult& result, Adoption& a);
  void list(Vertex v, Adoption& a);
  void drop_image(Vertex image);
  // level_lift.cc
  void lift();
  void sort_moved();
  void lift_range(size_t begin, size_t end, uint32_t hand, Vec<Delta>& deltas, Vec<Delta>& fresh);
  void subtract_moved(size_t begin, size_t end, uint32_t hand, Vec<Delta>& deltas);
  void add_moved(size_t begin, size_t end, uint32_t hand, Vec<Delta>& deltas, Vec<Delta>& fresh);

  void fit(Sums& sums, const Level& level) const;
  void finish();
  void forget() noexcept;

  void work(uint64_t amount) {
    if ((unpolled_ += amount) >= Pace::kEvery) report_work();
  }
  void report_work();

  // Of a hub's neighbours with different weights only the heaviest is a good merge at first, then
  // the next one, and so on: one per level, if only good pairs were put into one bag. From this
  // level on new vertices always join the bag of their heaviest neighbour, and the run finds out
  // how many of them can be merged one after the other. Low levels have many new vertices, and
  // their bags would become large without need.
  static constexpr uint32_t kEagerFrom = 14;

  const Rule& rule_;
  const Rule exact_;  // of the last level
  NodeStore& nodes_;
  Workers& workers_;
  LookAhead ahead_;
  Counters counters_;  // but for edges_rerun, which is what the runs have read
  Poll* poll_ = nullptr;
  uint64_t unpolled_ = 0;    // work since the poll was called
  uint64_t level_work_ = 0;  // on the level in progress, up to then
  uint64_t level_from_ = 0,
           level_todo_ = 0;  // of the phase: done before the level, and to do on it
  // Of the level in progress.
  uint32_t index_ = 0, bound_ = 0;
  LevelKind kind_;
  Level* low_ = nullptr;
  Level* high_ = nullptr;
  LevelChanges* in_ = nullptr;
  LevelChanges* out_ = nullptr;
  Buffer<uint32_t> owned_at_;  // by fresh edge: its position among the entries of its owner
  Vec<DeltasOf> delta_groups_;
  Buffer<Delta> grouped_;       // the deltas, by delta_groups_
  Buffer<uint32_t> positions_;  // by delta: of the edge among the entries of `a`, or kNone
  Vec<Delta> touched_;          // edges whose weight changed, with the new weight
  Vec<Vertex> dirty_;           // vertices whose groups must be rerun, for check_changed
  Vec<Vertex> searching_, known_;
  Vec<Candidate> candidates_;
  Vec<Element> elements_;
  Vec<Bag> bags_;
  Vec<Vertex> members_, images_;
  Vec<uint32_t> image_top_;  // by image in images_: the old merge at its top, or kNone
  Vec<OldMerge> old_merges_;
  Buffer<MemberResult> results_;
  Buffer<Merge> merges_;
  Vec<Moved> moved_;
  bool any_dropped_ = false;  // images, by drop_image
  // By hand.
  Vec<GroupRun> runs_;
  Vec<Sums> sums_;
  Vec<Vec<uint32_t>> entry_at_;  // by vertex; kNone outside of find_positions
  Vec<Vec<Vertex>> wanted_;
  Vec<Scratch> scratch_;
  // Of the bags, by member: groups and merges begin at the first member of their bag.
  Buffer<Group> groups_;
  Buffer<uint32_t> group_next_;
  Buffer<NodeRef> merge_node_;
  Adopted adopted_;  // of few bags
  NewSlots new_nodes_, new_images_;
  int64_t first_merge_id_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_LEVEL_UPDATE_H_
