// Cells that follow the vectors: division, dissolution, and moves between neighbouring cells.
//
// A division is 2-means of the members, begun with two that are far from each other; each part
// gets at least a quarter of them, also if all are equal. Afterwards members of the parts and of
// near cells go to the nearest of these centres (as in LIRE: Xu et al., SPFresh, SOSP 2023), unless
// a cell would become too small or too large by it. So a division causes no further changes, a
// dissolution only divisions, and balancing ends.
//
// Every step is made completely or not at all.

#include <algorithm>
#include <limits>
#include <ranges>

#include "core/neighbors/cells.h"

namespace dynhac {
namespace {

constexpr size_t kRounds = 4;                 // of 2-means
constexpr size_t kNear = kQueriesAtOnce - 1;  // cells whose members may move after a division

// A member, and how much nearer it is to the first centre than to the second: the smaller, the
// nearer.
struct Side {
  double score;
  uint32_t position, place;
  bool operator<(const Side& other) const {
    return score < other.score || (score == other.score && position < other.position);
  }
};

// The member that is the farthest from a centre.
uint32_t farthest(const CellStore& store, size_t centre, std::span<const uint32_t> members) {
  uint32_t found = members.front();
  double most = -1;
  for (const uint32_t place : members) {
    const double distance = store.distance(centre, store.row(place));
    if (distance > most) {
      most = distance;
      found = place;
    }
  }
  return found;
}

}  // namespace

// Brings the cells in `touched`, and those that change by it, to a right size and centre.
void Cells::balance(CellStore& store, Vec<uint32_t>& touched, Poll* poll) const {
  Vec<double> sums(dimension());
  while (!touched.empty()) {
    if (poll != nullptr) poll->check();
    const uint32_t number = touched.back();
    touched.pop_back();
    if (number >= store.n_cells()) continue;  // it was dropped
    const Cell& cell = store.cell(number);
    if (cell.size() > kMostMembers) {
      divide(store, number, touched);
    } else if (cell.size() < kFewestMembers && store.n_cells() > 1) {
      dissolve(store, number, touched);
    } else if (cell.changes * 4 > cell.size()) {
      store.recentre(number, sums);
      store.trim_members(number);
    }
  }
}

void Cells::divide(CellStore& store, uint32_t cell, Vec<uint32_t>& touched) const {
  const size_t n = store.cell(cell).size();
  Vec<double> sums(dimension());
  Vec<float> mean(dimension());
  Vec<Side> sides(n);
  touched.reserve(touched.size() + 2);
  const auto other = static_cast<uint32_t>(store.add_cell(store.centre(cell)));
  try {
    store.reserve_members(other, n);
  } catch (...) {
    store.drop_cell(other);
    throw;
  }
  const Vec<uint32_t>& members = store.cell(cell).members;
  for (const uint32_t target : {cell, other}) {
    const uint32_t seed = farthest(store, cell, members);
    store.set_centre(target, {store.row(seed), dimension()});
  }
  size_t middle = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    size_t nearer = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const float* vector = store.row(members[i]);
      const double score = store.distance(cell, vector) - store.distance(other, vector);
      sides[i] = {score, i, members[i]};
      nearer += score < 0;
    }
    std::ranges::sort(sides, [](const Side& a, const Side& b) { return a < b; });
    middle = std::clamp(nearer, n / 4, n - n / 4);
    const auto rows =
        sides | std::views::transform([&](const Side& s) { return store.row(s.place); });
    store.mean_of(rows | std::views::take(middle), sums, mean);
    store.set_centre(cell, mean);
    store.mean_of(rows | std::views::drop(middle), sums, mean);
    store.set_centre(other, mean);
  }
  for (const Side& side : sides | std::views::drop(middle)) store.move(side.place, other);
  store.recentre(cell, sums);
  store.recentre(other, sums);
  store.trim_members(cell);
  store.trim_members(other);
  touched.push_back(cell);
  touched.push_back(other);
  draw_near(store, cell, other, touched);
}

void Cells::dissolve(CellStore& store, uint32_t cell, Vec<uint32_t>& touched) const {
  const Vec<uint32_t> members = store.cell(cell).members;
  Vec<uint32_t> targets(members.size());
  store.find_cells(members, targets, cell);
  touched.reserve(touched.size() + members.size() + 1);
  for (const uint32_t target : targets) {
    store.reserve_members(target, store.cell(target).size() +
                                      static_cast<size_t>(std::ranges::count(targets, target)));
  }
  for (size_t i = 0; i < members.size(); ++i) {
    store.move(members[i], targets[i]);
    touched.push_back(targets[i]);
  }
  const auto last = static_cast<uint32_t>(store.n_cells() - 1);
  store.drop_cell(cell);
  std::ranges::replace(touched, last, cell);
  touched.push_back(cell);
}

// After the division of a cell into two.
void Cells::draw_near(CellStore& store, uint32_t first, uint32_t second,
                      Vec<uint32_t>& touched) const {
  const Coder& coder = store.coder();
  Vec<int8_t> bytes(2 * coder.width());
  CodedQuery queries[2];
  for (size_t i = 0; i < 2; ++i) {
    int8_t* own = bytes.data() + i * coder.width();
    queries[i] = {coder.encode_query(store.centre(i == 0 ? first : second).data(), own), own};
  }
  Vec<float> ranks(2 * store.n_cells());
  store.rank(queries, ranks, {});
  struct Near {
    float rank;
    uint32_t cell;
  };
  Vec<Near> near;
  for (uint32_t cell = 0; cell < store.n_cells(); ++cell) {
    if (cell == first || cell == second) continue;
    near.push_back(
        {std::min(ranks[cell], ranks[store.n_cells() + cell]) + store.cell(cell).half, cell});
    if (!(near.back().rank > -std::numeric_limits<float>::infinity())) near.pop_back();
  }
  const size_t count = std::min(near.size(), kNear - 1);
  std::ranges::partial_sort(near, near.begin() + static_cast<ptrdiff_t>(count),
                            [](const Near& a, const Near& b) {
                              return a.rank < b.rank || (a.rank == b.rank && a.cell < b.cell);
                            });
  Vec<uint32_t> others;
  for (size_t i = 0; i < count; ++i) others.push_back(near[i].cell);
  const uint32_t both[] = {first, second};
  for (const uint32_t cell : others) improve(store, cell, both, touched);
  others.push_back(second);
  improve(store, first, others, touched);
  others.back() = first;
  improve(store, second, others, touched);
}

// Moves members of a cell to the nearest of at most kNear others, if that is nearer.
void Cells::improve(CellStore& store, uint32_t cell, std::span<const uint32_t> others,
                    Vec<uint32_t>& touched) const {
  const Coder& coder = store.coder();
  const CodeBlocks& codes = store.cell(cell).codes;
  const size_t width = coder.width(), n_blocks = codes.n_blocks(), n = others.size() + 1;
  Vec<int8_t> bytes(n * width);
  QueryCode queries[kQueriesAtOnce];
  float constants[kQueriesAtOnce];
  for (size_t i = 0; i < n; ++i) {
    const uint32_t target = i == 0 ? cell : others[i - 1];
    queries[i] = coder.encode_query(store.centre(target).data(), bytes.data() + i * width);
    constants[i] = static_cast<float>(queries[i].offset) + store.cell(target).half;
  }
  Vec<int32_t> dots(n * n_blocks * kLanes);
  coder.kernel().dots(bytes.data(), n, codes.bytes(0), n_blocks, width, dots.data());
  struct Move {
    uint32_t place, target;
  };
  Vec<Move> moves;
  size_t left = store.cell(cell).size();
  size_t sizes[kQueriesAtOnce] = {};
  for (size_t i = 1; i < n; ++i) sizes[i] = store.cell(others[i - 1]).size();
  for (size_t position = 0; position < codes.size() && left > kFewestMembers; ++position) {
    const BlockTerms& terms = *codes.terms(position / kLanes);
    const float scale = terms.scale[position % kLanes];
    size_t best = 0;
    float least = 0;
    for (size_t i = 0; i < n; ++i) {
      const int32_t dot = dots[i * n_blocks * kLanes + position];
      const float score = constants[i] - static_cast<float>(dot) * scale * queries[i].terms.scale;
      if (i == 0 || score < least) {
        best = i;
        least = score;
      }
    }
    if (best == 0 || sizes[best] >= kMostMembers) continue;
    moves.push_back({store.cell(cell).members[position], others[best - 1]});
    ++sizes[best];
    --left;
  }
  if (moves.empty()) return;
  touched.reserve(touched.size() + n);
  for (size_t i = 1; i < n; ++i) store.reserve_members(others[i - 1], sizes[i]);
  for (const Move& move : moves) store.move(move.place, move.target);
  touched.push_back(cell);
  for (const uint32_t other : others) touched.push_back(other);
}

}  // namespace dynhac
