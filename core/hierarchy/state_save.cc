#include <stdexcept>
#include <type_traits>

#include "core/hierarchy/state.h"

namespace dynhac {

namespace {

int64_t handle(uint32_t h) {
  return h == kNone ? -1 : static_cast<int64_t>(h);
}

constexpr size_t kRange = size_t{1} << 16;  // records in a range

template <class Record, class T>
SavedColumn gather(Workers& workers, const Vec<Record>& records, T Record::* field) {
  Vec<T> column(records.size());
  workers.for_ranges(records.size(), kRange, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) column[i] = records[i].*field;
  });
  return column;
}

// By entry, vertex after vertex; weights by edge.
template <class T>
SavedColumn gather(Workers& workers, const Level& level, T Entry::* field) {
  constexpr bool kByEdge = std::is_same_v<T, Weight>;
  constexpr size_t kVertices = size_t{1} << 13;
  Vec<size_t> begins(Workers::ranges(level.slots(), kVertices) + 1, 0);
  const auto for_entries = [&](size_t begin, size_t end, auto visit) {
    for (size_t v = begin; v < end; ++v) {
      for (const Entry& e : level.edges(static_cast<Vertex>(v))) {
        if (!kByEdge || e.neighbour > v) visit(e);
      }
    }
  };
  workers.for_ranges_numbered(level.slots(), kVertices,
                              [&](size_t range, size_t begin, size_t end, uint32_t) {
                                size_t count = 0;
                                if constexpr (kByEdge) {
                                  for_entries(begin, end, [&](const Entry&) { ++count; });
                                } else {
                                  for (size_t v = begin; v < end; ++v) count += level.cold[v].used;
                                }
                                begins[range + 1] = count;
                              });
  for (size_t range = 1; range < begins.size(); ++range) begins[range] += begins[range - 1];
  Vec<T> column(begins.back());
  workers.for_ranges_numbered(level.slots(), kVertices,
                              [&](size_t range, size_t begin, size_t end, uint32_t) {
                                T* out = column.data() + begins[range];
                                for_entries(begin, end, [&](const Entry& e) { *out++ = e.*field; });
                              });
  return column;
}

}  // namespace

std::vector<std::string> EngineState::names(const Engine& engine) {
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

SavedColumn EngineState::save(const Engine& engine, size_t index, Workers& workers) {
  const NodeStore& nodes = engine.nodes_;
  if (index-- == 0) {
    Vec<int64_t> counts = {engine.version_, nodes.next_id_, nodes.next_leaf_, handle(nodes.free_),
                           handle(engine.last_level_.index())};
    for (const auto& level : engine.levels_) counts.push_back(handle(level->free_));
    return counts;
  }
  if (index < std::size(state::kNodeColumns)) {
    return std::visit([&](auto field) { return gather(workers, nodes.nodes, field); },
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
    return std::visit(
        [&](auto field) { return gather(workers, state::records(level, field), field); },
        state::kSlotColumns[index].field);
  }
  return std::visit([&](auto field) { return gather(workers, level, field); },
                    state::kEntryColumns[index - std::size(state::kSlotColumns)].field);
}

Vec<int64_t> EngineState::keys(const Engine& engine) {
  return engine.keys_locked();
}

}  // namespace dynhac
