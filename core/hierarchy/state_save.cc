#include <stdexcept>

#include "core/hierarchy/state.h"

namespace dynhac {

namespace {

int64_t handle(uint32_t h) {
  return h == kNone ? -1 : static_cast<int64_t>(h);
}

template <class T, class Get>
Vec<T> gather(uint32_t count, Get get) {
  Vec<T> column(count);
  for (uint32_t i = 0; i < count; ++i) column[i] = get(i);
  return column;
}

// visit(entry, vertex) for all entries of a level, vertex after vertex.
template <class Visit>
void for_each_entry(const Level& level, Visit visit) {
  for (Vertex v = 0; v < level.slots(); ++v) {
    for (const Entry& e : level.edges(v)) visit(e, v);
  }
}

template <class Get>
Vec<uint32_t> gather_entries(const Level& level, Get get) {
  size_t used = 0;
  for (const Cold& c : level.cold) used += c.used;
  Vec<uint32_t> column;
  column.reserve(used);
  for_each_entry(level, [&](const Entry& e, Vertex) { column.push_back(get(e)); });
  return column;
}

}  // namespace

std::vector<std::string> EngineState::names(const Engine& engine) {
  const auto lock = engine.lock_.read();
  std::vector<std::string> names = {"counts"};
  for (const char* name : state::kNodeColumns) names.push_back(std::string("nodes/") + name);
  names.push_back("keys");
  for (size_t i = 0; i < engine.levels_.size(); ++i) {
    for (const char* name : state::kLevelColumns) names.push_back(state::level_column(i, name));
  }
  return names;
}

SavedColumn EngineState::save(const Engine& engine, size_t index) {
  const auto lock = engine.lock_.read();
  if (index-- == 0) return save_counts(engine);
  if (index < std::size(state::kNodeColumns)) return save_nodes(engine.nodes_, index);
  index -= std::size(state::kNodeColumns);
  if (index-- == 0) return save_keys(engine);
  const size_t level = index / std::size(state::kLevelColumns);
  if (level >= engine.levels_.size()) throw std::out_of_range("no such column");
  return save_level(*engine.levels_[level], index % std::size(state::kLevelColumns));
}

SavedColumn EngineState::save_counts(const Engine& engine) {
  const NodeStore& nodes = engine.nodes_;
  Vec<int64_t> counts = {engine.version_, nodes.next_id_, nodes.next_leaf_, handle(nodes.free_)};
  for (const auto& level : engine.levels_) counts.push_back(handle(level->free_));
  return counts;
}

SavedColumn EngineState::save_nodes(const NodeStore& store, size_t index) {
  auto column = [&]<class T>(T Node::* field) -> SavedColumn {
    return gather<T>(store.slots(), [&](NodeRef n) { return store[n].*field; });
  };
  switch (index) {
    case 0:
      return column(&Node::id);
    case 1:
      return column(&Node::similarity);
    case 2:
      return column(&Node::least_merge);
    case 3:
      return column(&Node::left);
    case 4:
      return column(&Node::right);
    case 5:
      return column(&Node::size);
    default:
      return column(&Node::level);
  }
}

// Free slots may hold outdated keys; they are saved as 0.
SavedColumn EngineState::save_keys(const Engine& engine) {
  const Level& level = *engine.levels_[0];
  return gather<int64_t>(level.slots(),
                         [&](Vertex v) { return level.lives(v) ? engine.keys_[v] : 0; });
}

SavedColumn EngineState::save_level(const Level& level, size_t index) {
  auto cold = [&](auto Cold::* field) {
    return gather<uint32_t>(level.slots(), [&](Vertex v) { return level.cold[v].*field; });
  };
  switch (index) {
    case 0:
      return gather<uint32_t>(level.slots(), [&](Vertex v) { return level.role[v].image; });
    case 1:
      return gather<double>(level.slots(), [&](Vertex v) { return level.role[v].hi; });
    case 2:
      return cold(&Cold::node);
    case 3:
      return cold(&Cold::next);
    case 4:
      return cold(&Cold::first);
    case 5:
      return cold(&Cold::capacity);
    case 6:
      return cold(&Cold::used);
    case 7:
      return cold(&Cold::free_slots);
    case 8:
      return gather_entries(level, [](const Entry& e) { return e.neighbour; });
    case 9:
      return gather_entries(level, [](const Entry& e) { return e.mirror; });
    default: {
      size_t ends = 0;
      for (const Cold& c : level.cold) ends += c.live;
      Vec<int64_t> weights;
      weights.reserve(ends / 2);
      for_each_entry(level, [&](const Entry& e, Vertex v) {
        if (e.neighbour > v) weights.push_back(e.weight);
      });
      return weights;
    }
  }
}

}  // namespace dynhac
