// Columns of ids between Python and the core: arrays of int64, or lists of str.

#ifndef DYNHAC_BINDINGS_IDS_H_
#define DYNHAC_BINDINGS_IDS_H_

#include <nanobind/nanobind.h>

#include "core/base/id_column.h"
#include "core/base/texts.h"

namespace dynhac {

// Texts are UTF-8, in which lone surrogates are encoded as well.
Texts to_texts(nanobind::handle list);
nanobind::object to_python(const Texts& texts);  // a list of str

// An array of int64, a tuple of int, or a list of str.
IdColumn to_ids(nanobind::handle column);
nanobind::object to_python(IdColumn&& column);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_IDS_H_
