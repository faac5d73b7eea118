// dynhac._core.ChangeData: what an update did.

#include <memory>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "core/hierarchy/engine.h"

namespace dynhac {
namespace {

nb::handle node_versions_type;

nb::object versions_of(const Vec<NodeVersion>& versions) {
  Vec<int64_t> id, size;
  Vec<double> similarity;
  auto on = std::make_unique<bool[]>(versions.size());
  for (size_t i = 0; i < versions.size(); ++i) {
    id.push_back(versions[i].id);
    size.push_back(versions[i].size);
    similarity.push_back(versions[i].similarity);
    on[i] = versions[i].passed_on;
  }
  bool* data = on.get();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<bool*>(p); });
  on.release();
  return node_versions_type(to_numpy(std::move(id)), to_numpy(std::move(similarity)),
                            to_numpy(std::move(size)),
                            nb::ndarray<nb::numpy, bool>(data, {versions.size()}, owner));
}

}  // namespace

void bind_change(nb::module_& m) {
  node_versions_type =
      named_tuple("NodeVersions", {"node_id", "similarity", "size", "passed_on"}, m);

  nb::class_<Change>(m, "ChangeData")
      .def_prop_ro("levels", [](const Change& c) { return c.counters.levels; })
      .def_prop_ro("groups_rerun", [](const Change& c) { return c.counters.groups_rerun; })
      .def_prop_ro("vertices_rerun", [](const Change& c) { return c.counters.vertices_rerun; })
      .def_prop_ro("edges_rerun", [](const Change& c) { return c.counters.edges_rerun; })
      .def_prop_ro("edges_changed", [](const Change& c) { return c.counters.edges_changed; })
      .def_prop_ro("nodes_created", [](const Change& c) { return c.created.size(); })
      .def_prop_ro("nodes_removed", [](const Change& c) { return c.removed.size(); })
      .def_ro("seconds", &Change::seconds)
      .def("created", [](const Change& c) { return versions_of(c.created); })
      .def("removed", [](const Change& c) { return versions_of(c.removed); });
}

}  // namespace dynhac
