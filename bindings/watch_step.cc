// dynhac._core.WatchStep: what one update did to the clusters of a watch. Its arrays are made when
// they are asked for.

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/numbers.h"
#include "core/watch/watch.h"

namespace dynhac {
namespace {

template <class Row, class Value>
nb::object column_of(const Vec<Row>& rows, Value Row::* value) {
  Vec<int64_t> column;
  column.reserve(rows.size());
  for (const Row& row : rows) column.push_back(static_cast<int64_t>(row.*value));
  return to_numpy(std::move(column));
}

}  // namespace

void bind_watch_step(nb::module_& m) {
  using Step = WatchStep;
  using Size = WatchStep::Size;
  using Move = WatchStep::Move;
  nb::class_<Step>(m, "WatchStep")
      .def_prop_ro("version", [](const Step& s) { return s.moment.version; })
      .def_prop_ro("clock", [](const Step& s) { return to_python(s.moment.clock); })
      .def_prop_ro("cluster", [](const Step& s) { return column_of(s.sizes, &Size::cluster); })
      .def_prop_ro("before", [](const Step& s) { return column_of(s.sizes, &Size::before); })
      .def_prop_ro("now", [](const Step& s) { return column_of(s.sizes, &Size::now); })
      .def_prop_ro("source", [](const Step& s) { return column_of(s.moves, &Move::from); })
      .def_prop_ro("target", [](const Step& s) { return column_of(s.moves, &Move::to); })
      .def_prop_ro("end", [](const Step& s) { return column_of(s.moves, &Move::end); })
      .def_prop_ro("keys", [](const Step& s) { return to_numpy(Vec<int64_t>(s.keys)); })
      .def("drop_keys", [](Step& s) { Vec<int64_t>().swap(s.keys); });
}

}  // namespace dynhac
