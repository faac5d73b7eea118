// Class SimilarityRule: the built-in similarities.

#include "bindings/similarity.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"

namespace dynhac {

void PythonSimilarity::apply(std::span<double> values, Workers&) const {
  const nb::gil_scoped_acquire gil;
  nb::object found = function_(to_numpy(Vec<double>(values.begin(), values.end())));
  Column<double> column;
  if (!column.open(found.ptr()) || column.size() != values.size()) {
    throw std::invalid_argument("a similarity function must return an array of float64");
  }
  std::ranges::copy(column.view(), values.begin());
}

namespace {

void construct(SimilarityRule* self, const char* name, double sigma) {
  using Kind = SimilarityRule::Kind;
  for (const auto& [known, kind] : {std::pair<std::string_view, Kind>{"inverse", Kind::kInverse},
                                    {"gaussian", Kind::kGaussian},
                                    {"cosine", Kind::kCosine},
                                    {"dot", Kind::kDot}}) {
    if (known == name) {
      new (self) SimilarityRule(kind, sigma);
      return;
    }
  }
  throw std::invalid_argument("no similarity has this name");
}

nb::object call(const SimilarityRule& rule, const Column<double>& distances) {
  Vec<double> values(distances.view().begin(), distances.view().end());
  Workers alone(1);
  rule.apply(values, alone);
  return to_numpy(std::move(values));
}

}  // namespace

void bind_similarity(nb::module_& m) {
  nb::class_<SimilarityRule>(m, "SimilarityRule")
      .def("__init__", &construct, nb::arg("name"), nb::arg("sigma"))
      .def("__call__", &call, nb::arg("distances"));
}

}  // namespace dynhac
