// One level of an update: takes changes of a level's graph, keeps every group whose merges are
// still good, reruns the others, and says what that changes on the next level.
//
// The steps of run(), each a member function:
//   apply      the weights and vertices of the level become what they are to be (level_update.cc)
//   check      linkages that are new or grown are held against the certificates: a group in
//              conflict is to be rerun; vertices alone whose heaviest edge may be another are
//              listed
//   search     those listed, and new vertices, try to join their heaviest neighbour
//   regroup    what is to be rerun forms bags, and every bag is run (level_bags.cc); its groups get
//              images, its merges become dendrogram nodes (level_adopt.cc); vertices left alone try
//              once more
//   lift       weight changes and moves of vertices between groups turn into weight changes between
//              images (level_lift.cc)
// Between them LookAhead brings what the next level will read into the cache.
//
// Edges of the next level are sums over edges of this one, in exact integers. So a change moves up
// as a difference: a changed weight adds its difference between the old images of its ends, and an
// edge with an end that moved is subtracted between the old images and added between the new ones.
// Everything that did not change is not visited.
//
// A cluster that changes stays the same vertex: its size, node and least merge are overwritten, and
// it is listed in Pending::changed so that its group is rerun.

#ifndef DYNHAC_HIERARCHY_LEVEL_UPDATE_H_
#define DYNHAC_HIERARCHY_LEVEL_UPDATE_H_

#include <span>
#include <utility>

#include "core/base/look_ahead.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/hierarchy/group_run.h"
#include "core/hierarchy/level.h"
#include "core/hierarchy/node_store.h"
#include "core/hierarchy/types.h"
#include "core/watch/overlap.h"

namespace dynhac {

struct Delta {
  Vertex a, b;
  Weight w;
};

struct Changed {
  Vertex v;
  uint32_t old_size;
};

// What a level is asked to take.
struct Pending {
  Vec<Vertex> removed;  // still with their edges
  Vec<Vertex> created;  // not yet with edges
  Vec<Changed> changed;
  Vec<Delta>
      deltas;        // differences of weights; a pair may come more than once, removed vertices too
  Vec<Delta> fresh;  // edges of created vertices, every pair once

  bool empty() const {
    return removed.empty() && created.empty() && changed.empty() && deltas.empty() && fresh.empty();
  }
  void clear();
};

struct Counters {
  int64_t levels = 0, groups_rerun = 0, vertices_rerun = 0, edges_rerun = 0, edges_changed = 0;
};

// Called now and then during long work; throws to abandon it.
class Poll {
 public:
  virtual ~Poll() = default;
  virtual void check() = 0;
};

class LevelUpdate {
 public:
  LevelUpdate(const Rule& rule, NodeStore& nodes, Workers& workers)
      : rule_(rule),
        nodes_(nodes),
        workers_(workers),
        ahead_(nodes),
        runs_(workers.count()),
        sums_(workers.count()) {}

  // Applies `in` to `low`, which is level `index`, and writes what `high`, the next one, must take
  // to `out`. Both levels are in a transaction. `top`, if any, is the level above them. Uses `in`
  // up.
  void run(uint32_t index, Level& low, Level& high, const Level* top, Pending& in, Pending& out);

  // After an exception: forget whatever was in progress.
  void reset() noexcept;

  Counters counters;
  Poll* poll = nullptr;

 private:
  // Cold::flags
  static constexpr uint8_t kListed = 1;  // in searching_: heaviest edge looked at, partner tried
  static constexpr uint8_t kKnown = 2;   // Hot::wmax is right although it is in a group
  static constexpr uint8_t kMoved = 4;   // in moved_

  struct Element {  // a group, or a vertex without one, on the way to a bag
    Vertex first;   // its first member
    uint32_t parent, count;
    uint32_t next, tail;  // in the same bag
    bool dirty;
  };
  struct Candidate {
    double l;
    uint64_t rank;
    Vertex v, partner;
    bool operator<(const Candidate& o) const {
      if (l != o.l) return l > o.l;
      return rank != o.rank ? rank > o.rank : v < o.v;  // both ends may propose one edge
    }
  };
  struct Bag {
    uint32_t members, members_end;  // in members_
    uint32_t images, images_end;    // in images_: of the groups that went into it
    uint32_t old, old_end;          // in old_merges_
    uint32_t merged;                // number of merges, from merges_[members] on
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
    // Calls write(image, sum) for every sum that is not 0, and starts anew.
    template <class Write>
    void flush(Write write) {
      for (const Vertex image : touched) {
        if (weight[image] != 0) write(image, weight[image]);
        weight[image] = 0;  // an image may be listed twice, if its sum was 0 in between
      }
      touched.clear();
    }
  };

  // Of the bag being adopted.
  struct Group {
    uint32_t first, count;  // members, linked through group_next_
    uint32_t ref;           // its top
    uint32_t size;
    uint32_t image_index;  // of the image that it takes over, in images_; kNone: none
    bool finished;
  };

  // level_update.cc
  Vertex first_concerned() const;
  void apply_removals();
  void apply_deltas();
  void index_entries(Vertex a, bool clear);
  void prefetch_ahead(std::span<const Entry> entries, size_t p) const;
  uint32_t apply_delta(const Delta& d, uint32_t at_a);
  void apply_fresh();
  void pass_up(Vertex a, Vertex b, Weight difference);
  void flush_up(Vertex a);
  void lost(Vertex v, Vertex neighbour);
  void check_changed();
  void check_end(Vertex v, Vertex neighbour, double l);
  void list(Vertex v);
  void search(size_t from);
  double heaviest_of(Vertex v);
  void join_partners();
  // level_bags.cc
  uint32_t element(Vertex v);
  uint32_t find(uint32_t e);
  uint32_t unite(uint32_t a, uint32_t b);
  void mark(Vertex v) { elements_[find(element(v))].dirty = true; }
  bool form_bags();
  void collect_old_merges(Bag& bag);
  void run_bags();
  void run_bags_in_pieces(uint32_t piece_size);
  void run_bag(Bag& bag, GroupRun& run);
  // level_adopt.cc
  void adopt(const Bag& bag);
  bool adopt_single(const Bag& bag);
  bool adopt_same(const Bag& bag);
  void form_groups(const Bag& bag);
  void match_merges(const Bag& bag);
  void write_nodes(const Bag& bag);
  void assign_images(const Bag& bag);
  Vertex write_image(const Group& group, NodeRef node, double least_merge, Vertex first,
                     bool other_leaves);
  bool has_other_leaves(Vertex v) const;
  void write_member(Vertex v, Vertex image, Vertex next, const MemberResult& result);
  void drop_image(Vertex image);
  // level_lift.cc
  void lift();
  void lift_pieces();
  void subtract_moved(size_t begin, size_t end, Sums& sums, Vec<Delta>& deltas) const;
  void add_moved(size_t begin, size_t end, Sums& sums, Vec<Delta>& deltas, Vec<Delta>& fresh) const;

  void fit_sums();
  void finish();
  void forget() noexcept;

  void work(uint64_t amount) {
    if ((worked_ += amount) >= kPollEvery) {
      worked_ = 0;
      if (poll != nullptr) poll->check();
    }
  }
  static constexpr uint64_t kPollEvery = 1 << 20;  // entries

  // Of a hub's neighbours with different weights only the heaviest is good for it at first, and the
  // others one after the other: one a level, if only good edges brought vertices together. Ordinary
  // graphs are done before this level. From here on new vertices join the bag of their heaviest
  // neighbour in any case, and the run finds out how many of them can be merged in turn.
  static constexpr uint32_t kEagerFrom = 24;

  const Rule& rule_;
  NodeStore& nodes_;
  Workers& workers_;
  LookAhead ahead_;
  uint64_t worked_ = 0;
  // Of the level in progress.
  uint32_t index_ = 0, bound_ = 0;
  Level* low_ = nullptr;
  Level* high_ = nullptr;
  Pending* in_ = nullptr;
  Pending* out_ = nullptr;
  Vec<Delta> touched_;  // edges with another weight
  Vec<Vertex> dirty_;   // vertices whose groups must be rerun, before there are elements
  Vec<Vertex> searching_, known_;
  Vec<Candidate> candidates_;
  Vec<Element> elements_;
  Vec<Bag> bags_;
  Vec<Vertex> members_, images_;
  Vec<uint32_t> image_top_;  // by image in images_: the old merge at its top, or kNone
  Vec<OldMerge> old_merges_;
  Vec<MemberResult> results_;
  Vec<Merge> merges_;
  Vec<Moved> moved_;
  Vec<size_t> cuts_;    // of moved_, into pieces
  Vec<GroupRun> runs_;  // one a thread
  Vec<Sums> sums_;      // one a thread
  // Of the bag being adopted.
  Vec<Group> groups_;
  Vec<uint32_t> group_of_, group_next_, ref_group_;
  Vec<Overlap> overlaps_;  // of images_ and groups_
  Vec<NodeRef> merge_node_;
  Vec<uint32_t> stand_in_, old_stand_in_;
  Vec<uint8_t> old_used_, image_taken_, leaves_changed_;
  Vec<std::pair<uint64_t, uint32_t>> old_pairs_;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_LEVEL_UPDATE_H_
