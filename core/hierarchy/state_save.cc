#include <stdexcept>
#include <type_traits>

#include "core/hierarchy/state.h"

namespace dynhac {

namespace {

int64_t handle(uint32_t h) {
  return h == kNone ? -1 : static_cast<int64_t>(h);
}

template <class Record, class T>
SavedColumn gather(const Vec<Record>& records, T Record::* field) {
  Vec<T> column;
  column.reserve(records.size());
  for (const Record& record : records) column.push_back(record.*field);
  return column;
}

// By entry, vertex after vertex; weights by edge.
template <class T>
SavedColumn gather(const Level& level, T Entry::* field) {
  constexpr bool kByEdge = std::is_same_v<T, Weight>;
  size_t size = 0;
  for (const Cold& c : level.cold) size += kByEdge ? c.live : c.used;
  Vec<T> column;
  column.reserve(kByEdge ? size / 2 : size);
  for (Vertex v = 0; v < level.slots(); ++v) {
    for (const Entry& e : level.edges(v)) {
      if (!kByEdge || e.neighbour > v) column.push_back(e.*field);
    }
  }
  return column;
}

}  // namespace

std::vector<std::string> EngineState::names(const Engine& engine) {
  const auto lock = engine.lock_.read();
  std::vector<std::string> names = {"counts"};
  for (const auto& column : state::kNodeColumns)
    names.push_back(std::string("nodes/") + column.name);
  names.push_back("keys");
  for (size_t i = 0; i < engine.levels_.size(); ++i) {
    for (const auto& column : state::kSlotColumns)
      names.push_back(state::level_column(i, column.name));
    for (const auto& column : state::kEntryColumns)
      names.push_back(state::level_column(i, column.name));
  }
  return names;
}

SavedColumn EngineState::save(const Engine& engine, size_t index) {
  const auto lock = engine.lock_.read();
  const NodeStore& nodes = engine.nodes_;
  if (index-- == 0) {
    Vec<int64_t> counts = {engine.version_, nodes.next_id_, nodes.next_leaf_, handle(nodes.free_),
                           handle(engine.last_level_.index())};
    for (const auto& level : engine.levels_) counts.push_back(handle(level->free_));
    return counts;
  }
  if (index < std::size(state::kNodeColumns)) {
    return std::visit([&](auto field) { return gather(nodes.nodes, field); },
                      state::kNodeColumns[index].field);
  }
  index -= std::size(state::kNodeColumns);
  if (index-- == 0) {
    const Level& level = *engine.levels_[0];
    Vec<int64_t> keys(level.slots(), 0);  // free slots may hold outdated keys; they are saved as 0
    for (Vertex v = 0; v < level.slots(); ++v) {
      if (level.lives(v)) keys[v] = engine.keys_[v];
    }
    return keys;
  }
  if (index / state::kLevelColumns >= engine.levels_.size()) {
    throw std::out_of_range("no such column");
  }
  const Level& level = *engine.levels_[index / state::kLevelColumns];
  index %= state::kLevelColumns;
  if (index < std::size(state::kSlotColumns)) {
    return std::visit([&](auto field) { return gather(state::records(level, field), field); },
                      state::kSlotColumns[index].field);
  }
  return std::visit([&](auto field) { return gather(level, field); },
                    state::kEntryColumns[index - std::size(state::kSlotColumns)].field);
}

}  // namespace dynhac
