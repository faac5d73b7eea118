// dynhac._core.subgraph_round.

#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/poll.h"
#include "core/subgraph/subgraph_round.h"

namespace dynhac {
namespace {

nb::object subgraph_arrays(const In<int64_t>& part, const In<int64_t>& other_part,
                           const In<int64_t>& u, const In<int64_t>& v, const In<int64_t>& w,
                           const In<int64_t>& size_u, const In<int64_t>& size_v,
                           const In<double>& least_u, double epsilon, double heavy) {
  CallPoll poll{nb::none()};
  RoundResult r = without_gil([&] {
    return subgraph_round({view(part), view(other_part), view(u), view(v), view(w), view(size_u),
                           view(size_v), view(least_u)},
                          epsilon, heavy, poll.get());
  });
  const auto columns = [](auto&... vectors) {
    return nb::make_tuple(to_numpy(std::move(vectors))...);
  };
  auto& [vertices, merges, edges] = r;
  return nb::make_tuple(
      columns(vertices.id, vertices.image, vertices.size, vertices.least, vertices.finished),
      columns(merges.a, merges.b, merges.size_a, merges.size_b, merges.w, merges.similarity,
              merges.least, merges.seq),
      columns(edges.part, edges.other_part, edges.u, edges.v, edges.w, edges.size_u, edges.size_v,
              edges.least_u, edges.least_v));
}

}  // namespace

void bind_subgraph(nb::module_& m) {
  m.def("subgraph_round", &subgraph_arrays, nb::arg("part"), nb::arg("other_part"), nb::arg("u"),
        nb::arg("v"), nb::arg("w"), nb::arg("size_u"), nb::arg("size_v"), nb::arg("least_u"),
        nb::arg("epsilon"), nb::arg("heavy"));
}

}  // namespace dynhac
