// Similarities that are functions of Python's, behind the interface of the core.

#ifndef DYNHAC_BINDINGS_SIMILARITY_H_
#define DYNHAC_BINDINGS_SIMILARITY_H_

#include <nanobind/nanobind.h>

#include "core/points/similarity.h"

namespace dynhac {

// Calls a function from an array of distances to an array of similarities, under the interpreter
// lock.
class PythonSimilarity : public Similarity {
 public:
  explicit PythonSimilarity(nanobind::handle function) : function_(function) {}
  void apply(std::span<double> values, Workers& workers) const override;

 private:
  nanobind::handle function_;  // kept alive by the owner of this object
};

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_SIMILARITY_H_
