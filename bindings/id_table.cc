// Class IdTable: text ids and their keys.

#include "core/base/id_table.h"

#include <stdexcept>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/ids.h"
#include "bindings/state_columns.h"
#include "core/hierarchy/state.h"

namespace dynhac {
namespace {

nb::object texts(const IdTable& table, const Column<int64_t>& keys) {
  try {
    return to_python(table.texts(keys.view()));
  } catch (const std::out_of_range& error) {
    throw nb::key_error(error.what());
  }
}

// The bytes of the texts of an engine's keys, one after the other, and their lengths.
nb::list state_columns(nb::handle_t<IdTable> self, nb::handle_t<Engine> holder) {
  const IdTable& table = nb::cast<const IdTable&>(self);
  const Engine& engine = nb::cast<const Engine&>(holder);
  const nb::object owner = nb::make_tuple(self, holder);
  nb::list columns;
  const auto text = [&](Workers&) -> AnyColumn {
    Vec<uint8_t> bytes;
    const Texts texts = table.texts_unlocked(EngineState::keys(engine));
    for (size_t i = 0; i < texts.size(); ++i) {
      bytes.insert(bytes.end(), texts[i].begin(), texts[i].end());
    }
    return bytes;
  };
  const auto lengths = [&](Workers&) -> AnyColumn {
    Vec<int64_t> lengths;
    const Texts texts = table.texts_unlocked(EngineState::keys(engine));
    for (size_t i = 0; i < texts.size(); ++i) {
      lengths.push_back(static_cast<int64_t>(texts[i].size()));
    }
    return lengths;
  };
  add_column(columns, "ids/text", {owner, text});
  add_column(columns, "ids/lengths", {owner, lengths});
  return columns;
}

IdTable* load(const Column<int64_t>& keys, const Column<uint8_t>& bytes,
              const Column<int64_t>& lengths, int64_t next_key) {
  const auto* begin = reinterpret_cast<const char*>(bytes.view().data());
  Texts texts;
  size_t at = 0;
  for (const int64_t length : lengths.view()) {
    if (length < 0 || static_cast<uint64_t>(length) > bytes.size() - at) {
      throw std::invalid_argument("the length of an id is out of range");
    }
    texts.push_back({begin + at, static_cast<size_t>(length)});
    at += static_cast<size_t>(length);
  }
  constexpr int64_t kMostKeys = int64_t{1} << 62;
  if (at != bytes.size() || next_key < 0 || next_key > kMostKeys) {
    throw std::invalid_argument("the ids do not have their lengths");
  }
  to_python(texts);  // raises if one is not UTF-8
  return new IdTable(keys.view(), texts, next_key);
}

}  // namespace

void bind_id_table(nb::module_& m) {
  nb::class_<IdTable>(m, "IdTable")
      .def(nb::init<>())
      .def("__len__", &IdTable::size)
      .def_prop_ro("used", &IdTable::used)
      .def_prop_ro("next_key", &IdTable::next_key)
      .def(
          "keys",
          [](const IdTable& table, nb::handle texts) {
            return to_numpy(table.keys(to_texts(texts)));
          },
          nb::arg("texts"))
      .def("texts", &texts, nb::arg("keys"))
      .def("state_columns", &state_columns, nb::arg("engine"))
      .def_static("load", &load, nb::arg("keys"), nb::arg("bytes"), nb::arg("lengths"),
                  nb::arg("next_key"), nb::rv_policy::take_ownership);
}

}  // namespace dynhac
