// dynhac._core: the automatic choice of clusters, the condensed tree, conductances and noise.

#include <algorithm>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "core/selection/select.h"

namespace dynhac {
namespace {

nb::handle condensed_type;

std::span<const int64_t> pairs(const In2<int64_t>& children) {
  return {children.data(), children.size()};
}

nb::object select_arrays(int64_t n, const In2<int64_t>& children, const In<double>& similarity,
                         const In<double>& min_similarity, int64_t min_size) {
  Vec<int64_t> labels(static_cast<size_t>(std::max<int64_t>(n, 0)));
  without_gil([&] {
    select_clusters(n, pairs(children), view(similarity), view(min_similarity), min_size, labels);
  });
  return to_numpy(std::move(labels));
}

nb::object condense_arrays(int64_t n, const In2<int64_t>& children, const In<double>& similarity,
                           const In<double>& min_similarity, int64_t min_size) {
  CondensedTree tree = without_gil([&] {
    return condense(n, pairs(children), view(similarity), view(min_similarity), min_size);
  });
  return condensed_type(to_numpy(std::move(tree.top)), to_numpy(std::move(tree.parent)),
                        to_numpy(std::move(tree.birth)), to_numpy(std::move(tree.death)),
                        to_numpy(std::move(tree.size)), to_numpy(std::move(tree.excess)),
                        to_numpy(std::move(tree.kept)).attr("view")("bool"),
                        to_numpy(std::move(tree.level)));
}

nb::object conductance_arrays(int64_t n, const In2<int64_t>& children,
                              const In<double>& similarity) {
  Vec<double> least =
      without_gil([&] { return least_conductances(n, pairs(children), view(similarity)); });
  return to_numpy(std::move(least));
}

nb::object nearest_arrays(int64_t n, const In2<int64_t>& children, const In<int64_t>& labels) {
  Vec<int64_t> given(view(labels).begin(), view(labels).end());
  without_gil([&] { give_nearest(n, pairs(children), given); });
  return to_numpy(std::move(given));
}

}  // namespace

void bind_selection(nb::module_& m) {
  condensed_type = named_tuple(
      "CondensedData", {"top", "parent", "birth", "death", "size", "excess", "kept", "level"}, m);

  m.def("select_clusters", &select_arrays, nb::arg("n"), nb::arg("children"), nb::arg("similarity"),
        nb::arg("min_similarity"), nb::arg("min_size"));
  m.def("condense", &condense_arrays, nb::arg("n"), nb::arg("children"), nb::arg("similarity"),
        nb::arg("min_similarity"), nb::arg("min_size"));
  m.def("least_conductances", &conductance_arrays, nb::arg("n"), nb::arg("children"),
        nb::arg("similarity"));
  m.def("give_nearest", &nearest_arrays, nb::arg("n"), nb::arg("children"), nb::arg("labels"));
}

}  // namespace dynhac
