#include <stdexcept>
#include <string_view>

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

// By entry, vertex after vertex.
Vec<uint32_t> entries(const Level& level, uint32_t Entry::* field) {
  size_t used = 0;
  for (const Cold& c : level.cold) used += c.used;
  Vec<uint32_t> column;
  column.reserve(used);
  for (Vertex v = 0; v < level.slots(); ++v) {
    for (const Entry& e : level.edges(v)) column.push_back(e.*field);
  }
  return column;
}

Vec<int64_t> weights(const Level& level) {
  size_t ends = 0;
  for (const Cold& c : level.cold) ends += c.live;
  Vec<int64_t> column;
  column.reserve(ends / 2);
  for (Vertex v = 0; v < level.slots(); ++v) {
    for (const Entry& e : level.edges(v)) {
      if (e.neighbour > v) column.push_back(e.weight);
    }
  }
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
  const std::string_view name = state::kNodeColumns[index];
  if (name == "id") return column(&Node::id);
  if (name == "similarity") return column(&Node::similarity);
  if (name == "least_merge") return column(&Node::least_merge);
  if (name == "left") return column(&Node::left);
  if (name == "right") return column(&Node::right);
  if (name == "size") return column(&Node::size);
  return column(&Node::level);
}

// Free slots may hold outdated keys; they are saved as 0.
SavedColumn EngineState::save_keys(const Engine& engine) {
  const Level& level = *engine.levels_[0];
  return gather<int64_t>(level.slots(),
                         [&](Vertex v) { return level.lives(v) ? engine.keys_[v] : 0; });
}

SavedColumn EngineState::save_level(const Level& level, size_t index) {
  auto role = [&]<class T>(T Role::* field) -> SavedColumn {
    return gather<T>(level.slots(), [&](Vertex v) { return level.role[v].*field; });
  };
  auto cold = [&](uint32_t Cold::* field) -> SavedColumn {
    return gather<uint32_t>(level.slots(), [&](Vertex v) { return level.cold[v].*field; });
  };
  const std::string_view name = state::kLevelColumns[index];
  if (name == "image") return role(&Role::image);
  if (name == "hi") return role(&Role::hi);
  if (name == "node") return cold(&Cold::node);
  if (name == "next") return cold(&Cold::next);
  if (name == "first") return cold(&Cold::first);
  if (name == "capacity") return cold(&Cold::capacity);
  if (name == "used") return cold(&Cold::used);
  if (name == "free_entry") return cold(&Cold::free_slots);
  if (name == "neighbor") return entries(level, &Entry::neighbour);
  if (name == "mirror") return entries(level, &Entry::mirror);
  return weights(level);
}

}  // namespace dynhac
