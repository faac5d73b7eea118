// Columns of the state of a model that have not been made yet.

#ifndef DYNHAC_BINDINGS_STATE_COLUMNS_H_
#define DYNHAC_BINDINGS_STATE_COLUMNS_H_

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "core/base/forked_columns.h"

namespace dynhac {

struct LazyColumn {
  nanobind::object owner;  // of what `make` reads
  MakeColumn make;
  uint32_t threads = 1;
  size_t width = 0;  // of its rows; 0: it has one dimension
};

// Adds (name, column) to a list.
inline void add_column(nanobind::list& columns, const std::string& name, LazyColumn column) {
  columns.append(nanobind::make_tuple(name, nanobind::cast(std::move(column))));
}

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_STATE_COLUMNS_H_
