// dynhac._core.check and dynhac._core.cut.

#include "core/check/check.h"

#include <stdexcept>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/poll.h"
#include "core/check/cut.h"

namespace dynhac {
namespace {

nb::handle check_result_type;

nb::object check_arrays(int64_t n, const In<int64_t>& u, const In<int64_t>& v, const In<int64_t>& w,
                        const In2<int64_t>& children, const In<double>& similarity,
                        const In<int32_t>& level, double epsilon, double threshold,
                        double resolution, nb::handle progress) {
  CallPoll poll(progress);
  const CheckResult r = without_gil([&] {
    return check(n, view(u), view(v), view(w), {children.data(), children.size()}, view(similarity),
                 view(level), epsilon, threshold, resolution, poll.get());
  });
  return check_result_type(r.merges, r.bad_merges, r.worst_goodness, r.wrong_similarities,
                           r.heavy_edges_left);
}

nb::object cut_arrays(int64_t n, const In2<int64_t>& children, const In<double>& min_similarity,
                      const In<double>& thresholds) {
  if (n < 0) throw std::invalid_argument("n is negative");
  Vec<int64_t> labels(thresholds.size() * static_cast<size_t>(n));
  without_gil([&] {
    cut(n, {children.data(), children.size()}, view(min_similarity), view(thresholds), labels);
  });
  return to_numpy(std::move(labels), {thresholds.size(), static_cast<size_t>(n)});
}

}  // namespace

void bind_check(nb::module_& m) {
  check_result_type = named_tuple(
      "CheckResult",
      {"merges", "bad_merges", "worst_goodness", "wrong_similarities", "heavy_edges_left"}, m);

  m.def("check", &check_arrays, nb::arg("n"), nb::arg("u"), nb::arg("v"), nb::arg("w"),
        nb::arg("children"), nb::arg("similarity"), nb::arg("level"), nb::arg("epsilon"),
        nb::arg("threshold"), nb::arg("resolution"), nb::arg("progress").none() = nb::none());
  m.def("cut", &cut_arrays, nb::arg("n"), nb::arg("children"), nb::arg("min_similarity"),
        nb::arg("thresholds"));
}

}  // namespace dynhac
