// The way of an update of points: through a neighbour index, which is Python's, to the table and
// the engine.
//
// `search` reserves slots, changes the index and makes edges; `finish` lets table and engine take
// it all in one step. Until that is `made`, what was done to the index stands in `steps`, so that
// whoever catches an error can take it back. `insert` and `remove` are both of them at once, for
// one point and nothing special about it; what they did not finish is *open* until `close`. All
// that is worth doing natively about them is done here: after the engine has been at work, every
// object of Python's that an update touches is far from the processor.

#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/points.h"
#include "bindings/poll.h"
#include "bindings/reentry_guard.h"
#include "core/points/nearest_edges.h"
#include "core/points/point_graph.h"
#include "core/points/point_table.h"
#include "core/points/similarity.h"

namespace dynhac {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

nb::object array_of(std::span<const int64_t> values) {
  return to_numpy(Vec<int64_t>(values.begin(), values.end()));
}

struct Rules {
  int64_t n_neighbors;
  double least;  // weights below it are 0 at the resolution
  bool repair;
  int64_t max_points;  // `insert` lets the oldest go for more; `search` is told what goes
};

// What one update of a single point did, beside what the engine tells.
struct OnePoint : Change {
  nb::object id;
  bool inserted = false;                     // or else removed
  Vec<int64_t> expired, repaired;            // keys
  nb::object expired_names, repaired_names;  // what they are as ids, if that is something else
  double seconds_search = 0, seconds_whole = 0;
};

class PointUpdater {
 public:
  PointUpdater(nb::object table, nb::object engine, nb::object index, nb::object similarity,
               nb::object check, nb::object names, nb::object guard, nb::object follow,
               const Rules& rules)
      : table_object_(std::move(table)),
        engine_object_(std::move(engine)),
        index_(std::move(index)),
        similarity_(std::move(similarity)),
        check_(std::move(check)),
        names_(std::move(names)),
        guard_object_(std::move(guard)),
        follow_(std::move(follow)),
        table_(nb::cast<PointTable&>(table_object_)),
        engine_(nb::cast<Engine&>(engine_object_)),
        guard_(nb::cast<ReentryGuard&>(guard_object_)),
        rules_(rules),
        version_(table_.version()) {}

  void search(nb::object vectors, nb::handle times, const Column<int64_t>& arrivals,
              int64_t next_arrival, int64_t next_id, nb::object leaving) {
    if (!vectors.is_none()) {
      Table<float> rows;
      if (!rows.open(vectors.ptr()) || rows.columns() != table_.dimension()) {
        throw std::invalid_argument("vectors");
      }
      const auto [kind, orders] = orders_of(times);
      if (kind != table_.kind()) throw std::invalid_argument("times");
      slots_ = table_.reserve({rows.view(), orders, arrivals.view(), next_arrival, next_id});
      slots_array_ = array_of(slots_);
    }
    Column<int64_t> gone;
    if (!gone.open(leaving.ptr())) throw std::invalid_argument("leaving");
    leaving_.assign(gone.view().begin(), gone.view().end());
    find_edges(vectors, leaving);
  }

  Change finish(const Column<int64_t>& keys) { return finish(keys.view()); }

  nb::object insert(nb::handle values, nb::object id, nb::handle time, nb::handle before) {
    const auto start = Clock::now();
    constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
    const bool full = std::cmp_greater_equal(table_.size(), most_points);
    if (open_ || guard_.held || full) return nb::none();
    const ScopedHold hold(guard_);
    const size_t dimension = table_.dimension();
    const std::span<float> vector(vector_.take({1, dimension}), dimension);
    const std::optional<int64_t> order = order_in(table_, time), cutoff = order_in(table_, before);
    const bool timed = table_.kind() != Times::kNone;
    if (!read_vector(values, vector) || time.is_none() == timed || order.has_value() != timed ||
        cutoff.has_value() == before.is_none()) {
      return nb::none();
    }
    const std::optional<Vec<int64_t>> expiring = expired_by(order, cutoff);
    if (!expiring) return nb::none();
    const bool counts = names_.is_none();  // on from the largest key, since they are ids
    const bool next = id.is_none() && counts;
    const std::optional<int64_t> key = next ? table_.next_id() : key_of(id, "claim");
    if (!key || (!next && table_.find({&*key, 1})[0] >= 0) || (counts && *key == kLargest)) {
      return nb::none();
    }
    OnePoint done;
    if (next) id = nb::int_(*key);
    done.expired_names = names_of(*expiring, "let_go");
    begin();
    const int64_t next_id = counts ? std::max(table_.next_id(), *key + 1) : table_.next_id();
    const std::span<const int64_t> orders(order ? &*order : nullptr, order ? 1 : 0);
    slots_ = table_.reserve({vector, orders, {}, table_.next_arrival() + 1, next_id});
    *slot_.take({1}) = slots_[0];
    slots_array_ = slot_.array();
    nb::object gone;
    if (!expiring->empty()) {
      leaving_ = *expiring;
      gone = leaving();
    }
    find_edges(vector_.array(), gone);
    finish_one(done, id, *key, true, start);
    inserted_ = std::move(done);
    inserted_object_.reset();
    follow(id);
    return id;
  }

  nb::object remove(nb::object id) {
    const auto start = Clock::now();
    if (open_ || guard_.held) return nb::none();
    const ScopedHold hold(guard_);
    const std::optional<int64_t> key = key_of(id, "doubt");
    const int64_t slot = key ? table_.find({&*key, 1})[0] : -1;
    if (slot < 0) return nb::none();
    begin();
    leaving_.push_back(slot);
    find_edges(nb::object(), leaving());
    nb::object done = nb::cast(OnePoint{});  // before: nothing may fail afterwards
    finish_one(nb::cast<OnePoint&>(done), id, *key, false, start);
    follow(nb::none());
    return done;
  }

  // Made an object when it is asked for, which it seldom is.
  nb::object inserted() {
    if (!inserted_object_.is_valid()) inserted_object_ = nb::cast(std::move(inserted_));
    return inserted_object_;
  }

  nb::object edges() const {
    return nb::make_tuple(array_of(edges_.u), array_of(edges_.v),
                          to_numpy(Vec<double>(edges_.weights)));
  }
  // (whether added, slots), as far as the index was changed.
  nb::list steps() const {
    nb::list list;
    for (const Step& step : steps_) list.append(nb::make_tuple(step.add, step.slots));
    return list;
  }
  void pop_step() {
    if (!steps_.empty()) steps_.pop_back();
  }
  bool made() const { return table_.version() != version_; }
  bool open() const { return open_; }
  void close() { open_ = false; }
  nb::object slots() const { return array_of(slots_); }
  nb::object leaving() const { return array_of(leaving_); }
  nb::object repaired() const { return array_of(repaired_); }

  int64_t most_points = 0;  // that `insert` may make of it
  bool unsure = false;      // whether the last step was made
  double seconds_search = 0;

 private:
  struct Step {
    bool add;
    nb::object slots;
  };

  // The key of an id, which is itself, or what a method of the names tells of a str.
  std::optional<int64_t> key_of(nb::handle id, const char* method) const {
    if (names_.is_none()) return to_int64(id);
    return PyUnicode_CheckExact(id.ptr()) ? to_int64(names_.attr(method)(id)) : std::nullopt;
  }

  // What a method tells of the keys of slots; nothing if keys are ids.
  nb::object names_of(std::span<const int64_t> slots, const char* method) const {
    if (names_.is_none() || slots.empty()) return {};
    return names_.attr(method)(to_numpy(table_.keys_of(slots)));
  }

  // The update has been made; what is left to do about it, if anything.
  void follow(const nb::object& inserted) {
    if (!names_.is_none() || engine_.watched()) follow_(inserted);
  }

  // What one more point of this time lets expire; none if that is among it.
  std::optional<Vec<int64_t>> expired_by(std::optional<int64_t> time,
                                         std::optional<int64_t> before) {
    const int64_t more = static_cast<int64_t>(table_.size()) - rules_.max_points + 1;
    const auto count = static_cast<size_t>(std::max(more, int64_t{0}));
    if (count == 0 && !before) return Vec<int64_t>();
    if (before && *time < *before) return std::nullopt;
    Vec<int64_t> slots = table_.oldest(count, before, {});
    const bool oldest = time && count > 0 && table_.times_of({&slots[count - 1], 1})[0] > *time;
    if (oldest) return std::nullopt;
    return slots;
  }

  // From here on what `made` and the like tell is about an `insert` or `remove`.
  void begin() {
    version_ = table_.version();
    steps_.clear();
    unsure = false;
    seconds_search = 0;
    slots_array_.reset();
    slots_.clear();
    leaving_.clear();
    repaired_.clear();
    edges_ = {};
    open_ = true;
  }

  // What the index found for the slots asked for, and who keeps it.
  struct Answer {
    std::span<const int64_t> own;
    nb::object found_array, distances_array;
    Table<int64_t> found;
    Table<double> distances;
    FoundRows rows() const { return {own, found.view(), distances.view(), found.columns()}; }
  };

  // Changes the index; finds the edges of the new points and of those to repair.
  void find_edges(const nb::object& vectors, const nb::object& leaving) {
    if (slots_.empty() && leaving_.empty()) return;
    const auto n_points = static_cast<int64_t>(table_.size() - leaving_.size() + slots_.size());
    if (!leaving_.empty()) change_index(false, leaving, nb::object());
    std::optional<Answer> answer;
    if (slots_.size() == 1) {
      // Searched for before it is there, a point does not find itself.
      if (n_points > 1) {
        ask(answer, slots_, vectors, std::min(rules_.n_neighbors, n_points - 1));
      }
      change_index(true, slots_array_, vectors);
    } else if (!slots_.empty()) {
      change_index(true, slots_array_, vectors);
      ask(answer, slots_, vectors, std::min(rules_.n_neighbors + 1, n_points));
    }
    if (answer) edges_ = weigh(answer->rows());
    if (!rules_.repair || leaving_.empty()) return;
    // A point with fewer edges is joined to its nearest anew.
    const int64_t enough = std::min((rules_.n_neighbors + 1) / 2, n_points - 1);
    repaired_ =
        without_gil([&] { return short_of_edges(engine_, table_, leaving_, edges_, enough); });
    if (repaired_.empty()) return;
    std::optional<Answer> more;
    nb::object rows =
        to_numpy(table_.vectors_of(repaired_), {repaired_.size(), table_.dimension()});
    ask(more, repaired_, rows, std::min(rules_.n_neighbors + 1, n_points));
    edges_ = weigh(answer ? JoinedRows(answer->rows(), more->rows()).view() : more->rows());
  }

  // An index that is not trusted gets arrays of its own: it may write to them, at any time.
  nb::object for_index(const nb::object& array) const {
    return check_.is_none() ? array : nb::object(array.attr("copy")());
  }

  void change_index(bool add, const nb::object& slots, const nb::object& vectors) {
    const auto start = Clock::now();
    steps_.push_back({add, slots});
    unsure = true;
    if (add) {
      index_.attr("add")(for_index(slots), for_index(vectors));
    } else {
      index_.attr("remove")(for_index(slots));
    }
    unsure = false;
    seconds_search += seconds_since(start);
  }

  void ask(std::optional<Answer>& answer, std::span<const int64_t> own, const nb::object& vectors,
           int64_t k) {
    const auto start = Clock::now();
    nb::object found = index_.attr("query")(for_index(vectors), k);
    seconds_search += seconds_since(start);
    if (!check_.is_none()) found = check_(found, own.size(), k, steps(), leaving());
    answer.emplace();
    answer->own = own;
    answer->found_array = found[0];
    answer->distances_array = found[1];
    if (!answer->found.open(answer->found_array.ptr()) ||
        !answer->distances.open(answer->distances_array.ptr()) ||
        answer->found.rows() != own.size()) {
      throw std::invalid_argument("the index has answered with other arrays than it should");
    }
  }

  WeightedEdges weigh(const FoundRows& rows) const {
    const auto most = static_cast<size_t>(rules_.n_neighbors);
    const Similarity* rule = nullptr;
    if (nb::try_cast(similarity_, rule)) {
      const auto run = [&] { return weighted(nearest_edges(rows, most), *rule, rules_.least); };
      constexpr size_t kQuick = 10'000;  // entries; done before another thread could get the GIL
      return rows.found.size() <= kQuick ? run() : without_gil(run);
    }
    NearestEdges edges = nearest_edges(rows, most);
    nb::object weights = similarity_(to_numpy(std::move(edges.distances)));
    Column<double> column;
    if (!column.open(weights.ptr())) throw std::invalid_argument("similarities");
    return weighted(std::move(edges.u), std::move(edges.v),
                    Vec<double>(column.view().begin(), column.view().end()), rules_.least);
  }

  Change finish(std::span<const int64_t> keys) {
    SignalPoll poll;
    return without_gil(
        [&] { return update_points(engine_, table_, keys, leaving_, edges_, &poll); });
  }

  void finish_one(OnePoint& done, const nb::object& id, int64_t key, bool inserts,
                  Clock::time_point start) {
    done.id = id;
    done.inserted = inserts;
    done.repaired = table_.keys_of(repaired_);
    done.repaired_names = names_of(repaired_, "ids_of");
    if (inserts) done.expired = table_.keys_of(leaving_);
    done.seconds_search = seconds_search;
    static_cast<Change&>(done) = finish(std::span(&key, inserts ? 1 : 0));
    done.seconds_whole = seconds_since(start);
    open_ = false;
  }

  const nb::object table_object_, engine_object_, index_, similarity_, check_, names_,
      guard_object_, follow_;
  PointTable& table_;
  Engine& engine_;
  ReentryGuard& guard_;
  const Rules rules_;
  OnePoint inserted_;  // unless it is an object
  nb::object inserted_object_;
  // Of the update on its way.
  bool open_ = false;
  int64_t version_;  // of the table, before it
  std::vector<Step> steps_;
  nb::object slots_array_;
  LentArray<int64_t> slot_;  // of one point,
  LentArray<float> vector_;  // and its vector
  Vec<int64_t> slots_, leaving_, repaired_;
  WeightedEdges edges_;
};

void construct(PointUpdater* self, nb::object table, nb::object engine, nb::object index,
               nb::object similarity, nb::object check, nb::object names, nb::object guard,
               nb::object follow, int64_t n_neighbors, double least, bool repair,
               int64_t max_points) {
  if (n_neighbors < 1 || max_points < 1) throw std::invalid_argument("n_neighbors, max_points");
  new (self)
      PointUpdater(std::move(table), std::move(engine), std::move(index), std::move(similarity),
                   std::move(check), std::move(names), std::move(guard), std::move(follow),
                   {n_neighbors, least, repair, max_points});
}

}  // namespace

void bind_point_updater(nb::module_& m) {
  nb::class_<OnePoint, Change>(m, "OnePoint")
      .def_ro("id", &OnePoint::id)
      .def_ro("inserted", &OnePoint::inserted)
      .def_prop_ro("expired",
                   [](const OnePoint& p) {
                     return p.expired_names.is_valid() ? p.expired_names : array_of(p.expired);
                   })
      .def_prop_ro("repaired",
                   [](const OnePoint& p) {
                     return p.repaired_names.is_valid() ? p.repaired_names : array_of(p.repaired);
                   })
      .def_ro("seconds_search", &OnePoint::seconds_search)
      .def_ro("seconds_whole", &OnePoint::seconds_whole);

  nb::class_<PointUpdater>(m, "PointUpdater")
      .def("__init__", &construct, nb::arg("table"), nb::arg("engine"), nb::arg("index").none(),
           nb::arg("similarity"), nb::arg("check").none(), nb::arg("names").none(),
           nb::arg("guard"), nb::arg("follow"), nb::arg("n_neighbors"), nb::arg("least"),
           nb::arg("repair"), nb::arg("max_points"))
      .def("search", &PointUpdater::search, nb::arg("vectors").none(), nb::arg("times").none(),
           nb::arg("arrivals"), nb::arg("next_arrival"), nb::arg("next_id"), nb::arg("leaving"))
      .def("finish", nb::overload_cast<const Column<int64_t>&>(&PointUpdater::finish),
           nb::arg("keys"))
      .def("insert", &PointUpdater::insert, nb::arg("values").none(), nb::arg("id").none(),
           nb::arg("time").none(), nb::arg("before").none())
      .def("remove", &PointUpdater::remove, nb::arg("id").none())
      .def_prop_ro("inserted", &PointUpdater::inserted)
      .def_prop_ro("open", &PointUpdater::open)
      .def("close", &PointUpdater::close)
      .def_rw("most_points", &PointUpdater::most_points)
      .def_prop_ro("steps", &PointUpdater::steps)
      .def("pop_step", &PointUpdater::pop_step)
      .def_ro("unsure", &PointUpdater::unsure)
      .def_ro("seconds_search", &PointUpdater::seconds_search)
      .def("edges", &PointUpdater::edges)
      .def_prop_ro("made", &PointUpdater::made)
      .def_prop_ro("slots", &PointUpdater::slots)
      .def_prop_ro("leaving", &PointUpdater::leaving)
      .def_prop_ro("repaired", &PointUpdater::repaired);
}

}  // namespace dynhac
