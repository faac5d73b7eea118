#include "core/neighbors/cell_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace dynhac {
namespace {

constexpr size_t kMostRows = 512;                 // at once
constexpr size_t kMostNumbers = size_t{1} << 21;  // of expectations, at once
constexpr size_t kFirstCells = 2;
constexpr size_t kBytesAtOnce = 1 << 17;  // of codes, which stay in the cache for all rows
constexpr size_t kMostBlocks = 64;        // at once
constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A cell that a row may examine, and the least rank that is expected there.
struct Prospect {
  float rank;
  uint32_t cell;
  bool operator<(const Prospect& other) const {
    return rank < other.rank || (rank == other.rank && cell < other.cell);
  }
};

struct Probe {
  uint32_t cell, row;
  bool operator<(const Probe& other) const {
    return cell < other.cell || (cell == other.cell && row < other.row);
  }
};

}  // namespace

// Rows are those that are searched for: all but zero vectors with another metric than Euclidean.
struct CellSearch::Work {
  Work(const CellSearch& search, const SearchRows& rows);

  size_t n_rows() const { return row_of.size(); }

  Vec<DistanceFrom> distances;  // by row of the call
  Vec<size_t> row_of;           // of the call
  Vec<int8_t> bytes;
  Vec<Candidates> candidates;
  Vec<float> expected;  // row * n_cells + cell; nan for cells of the first round
  Vec<std::optional<Vec<Prospect>>> prospects;
  Vec<uint32_t> own_cell;  // that has the vector of the row, else kNone
  Vec<Probe> probes;
  Vec<int8_t> gathered;  // codes of rows that examine the same cell
  Vec<int32_t> dots;
  Vec<uint16_t> hits;
  size_t step;  // blocks at once
};

CellSearch::Work::Work(const CellSearch& search, const SearchRows& rows) {
  const Coder& coder = search.store_.coder();
  const size_t dimension = coder.dimension(), width = coder.width();
  const size_t n = rows.vectors.size() / dimension;
  distances.reserve(n);
  row_of.reserve(n);
  candidates.reserve(n);
  bytes.resize(n * width);
  for (size_t row = 0; row < n; ++row) {
    const auto vector = rows.vectors.subspan(row * dimension, dimension);
    distances.emplace_back(coder.metric(), vector, coder.kernel());
    if (const auto distance = distances.back().to_all()) {
      first_slots(search.vectors_, *distance, rows.slots.subspan(row * rows.k, rows.k),
                  rows.distances.subspan(row * rows.k, rows.k));
      continue;
    }
    const QueryCode code = coder.encode_query(vector.data(), bytes.data() + n_rows() * width);
    candidates.emplace_back(code, rows.k);
    const uint32_t place = search.vectors_.find(vector.data());
    own_cell.push_back(place == kNone ? kNone : search.store_.cell_of(place));
    row_of.push_back(row);
  }
  step = std::clamp<size_t>(kBytesAtOnce / (kLanes * width), 1, kMostBlocks);
  gathered.resize(kQueriesAtOnce * width);
  dots.resize(kQueriesAtOnce * step * kLanes);
  hits.resize(step);
}

CellSearch::CellSearch(const CellStore& store, const DistinctVectors& vectors, bool exact)
    : store_(store), vectors_(vectors), exact_(exact) {
  radii_.reserve(store.n_cells());
  for (size_t cell = 0; cell < store.n_cells(); ++cell) {
    const Cell& own = store.cell(cell);
    const double radius = exact_ ? own.radius : std::sqrt(own.mean_square());
    radii_.push_back(std::nextafter(static_cast<float>(radius), kInfinite));
  }
}

size_t CellSearch::rows_at_once() const {
  return std::clamp<size_t>(kMostNumbers / (store_.n_cells() + 1), kQueriesAtOnce, kMostRows);
}

void CellSearch::search(const SearchRows& rows, double reach) const {
  Work work(*this, rows);
  if (store_.n_cells() > 0) {
    expect(work, reach);
    choose_first(work);
    examine(work);
    for (size_t count = kFirstCells; choose_next(work, count); count *= 2) examine(work);
  }
  answer(work, rows);
}

void CellSearch::scan_all(const SearchRows& rows) const {
  Work work(*this, rows);
  Vec<uint32_t> all(work.n_rows());
  for (uint32_t row = 0; row < all.size(); ++row) all[row] = row;
  for (size_t cell = 0; cell < store_.n_cells(); ++cell) scan_cell(work, cell, all);
  answer(work, rows);
}

void CellSearch::answer(Work& work, const SearchRows& rows) const {
  for (size_t row = 0; row < work.n_rows(); ++row) {
    const size_t begin = work.row_of[row] * rows.k;
    nearest(work.candidates[row], work.distances[work.row_of[row]], vectors_,
            rows.slots.subspan(begin, rows.k), rows.distances.subspan(begin, rows.k));
  }
}

void CellSearch::expect(Work& work, double reach) const {
  const size_t n_cells = store_.n_cells(), width = store_.coder().width();
  work.expected.resize(work.n_rows() * n_cells);
  Vec<float> unused(exact_ ? kQueriesAtOnce * n_cells : 0);
  CodedQuery queries[kQueriesAtOnce];
  const bool products = store_.coder().metric() == Metric::kInnerProduct;
  const auto cosine = static_cast<float>(reach);
  for (size_t begin = 0; begin < work.n_rows(); begin += kQueriesAtOnce) {
    const size_t count = std::min(kQueriesAtOnce, work.n_rows() - begin);
    for (size_t i = 0; i < count; ++i) {
      queries[i] = {work.candidates[begin + i].query(), work.bytes.data() + (begin + i) * width};
    }
    const std::span ranks(work.expected.data() + begin * n_cells, count * n_cells);
    if (exact_) {
      store_.rank(std::span(queries).first(count), unused, ranks);
    } else {
      store_.rank(std::span(queries).first(count), ranks, {});
    }
    for (size_t i = 0; i < count; ++i) {
      float* own = ranks.data() + i * n_cells;
      const QueryTerms& terms = queries[i].code.terms;
      const float length = terms.length + terms.error;
      for (size_t cell = 0; cell < n_cells; ++cell) {
        const float radius = radii_[cell], square = 2 * std::max(own[cell], 0.0f);
        float rank;
        if (products) {
          rank = own[cell] - length * radius * (exact_ ? 1 + 0x1p-20f : cosine);
        } else if (exact_) {
          const float rest = std::max(std::sqrt(square) - radius, 0.0f);
          rank = rest * rest / 2 * (1 - 0x1p-20f);
        } else {
          rank = (square + radius * radius) / 2 - std::sqrt(square) * radius * cosine;
        }
        own[cell] = rank > -kInfinite ? rank : -kInfinite;  // -infinity if it is not a number
      }
    }
  }
}

void CellSearch::choose_first(Work& work) const {
  const size_t n_cells = store_.n_cells();
  work.probes.clear();
  for (size_t row = 0; row < work.n_rows(); ++row) {
    float* expected = work.expected.data() + row * n_cells;
    Prospect best[kFirstCells] = {{kInfinite, kNone}, {kInfinite, kNone}};
    for (uint32_t cell = 0; cell < n_cells; ++cell) {
      const Prospect prospect{expected[cell], cell};
      if (!(prospect < best[1])) continue;
      best[1] = prospect;
      if (best[1] < best[0]) std::swap(best[0], best[1]);
    }
    for (const uint32_t cell : {best[0].cell, best[1].cell, work.own_cell[row]}) {
      if (cell == kNone || std::isnan(expected[cell])) continue;
      work.probes.push_back({cell, static_cast<uint32_t>(row)});
      expected[cell] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  work.prospects.resize(work.n_rows());
}

// Returns false if there are none.
bool CellSearch::choose_next(Work& work, size_t count) const {
  const size_t n_cells = store_.n_cells();
  work.probes.clear();
  for (size_t row = 0; row < work.n_rows(); ++row) {
    Candidates& candidates = work.candidates[row];
    // The rank that the k-th nearest so far has at most. A little more does no harm.
    const double rank = double{candidates.tightened_limit()} + candidates.query().offset;
    const float limit = std::nextafter(static_cast<float>(rank), kInfinite);
    if (!work.prospects[row].has_value()) {
      Vec<Prospect>& own = work.prospects[row].emplace();
      const float* expected = work.expected.data() + row * n_cells;
      for (uint32_t cell = 0; cell < n_cells; ++cell) {
        if (expected[cell] <= limit) own.push_back({expected[cell], cell});
      }
    }
    Vec<Prospect>& own = *work.prospects[row];
    std::erase_if(own, [&](const Prospect& p) { return p.rank > limit; });
    const size_t rest = own.size() - std::min(count, own.size());
    std::nth_element(own.begin(), own.begin() + static_cast<ptrdiff_t>(rest), own.end(),
                     [](const Prospect& a, const Prospect& b) { return b < a; });
    for (size_t i = rest; i < own.size(); ++i) {
      work.probes.push_back({own[i].cell, static_cast<uint32_t>(row)});
    }
    own.resize(rest);
  }
  return !work.probes.empty();
}

void CellSearch::examine(Work& work) const {
  std::sort(work.probes.begin(), work.probes.end());
  Vec<uint32_t> rows;
  for (size_t i = 0; i < work.probes.size();) {
    const uint32_t cell = work.probes[i].cell;
    rows.clear();
    for (; i < work.probes.size() && work.probes[i].cell == cell; ++i) {
      rows.push_back(work.probes[i].row);
    }
    scan_cell(work, cell, rows);
  }
}

void CellSearch::scan_cell(Work& work, size_t cell, std::span<const uint32_t> rows) const {
  const Cell& own = store_.cell(cell);
  const Coder& coder = store_.coder();
  const Kernel& kernel = coder.kernel();
  const size_t width = coder.width(), n_blocks = own.codes.n_blocks();
  for (size_t begin = 0; begin < rows.size(); begin += kQueriesAtOnce) {
    const auto some = rows.subspan(begin, std::min(kQueriesAtOnce, rows.size() - begin));
    for (size_t i = 0; i < some.size(); ++i) {
      std::copy_n(work.bytes.data() + some[i] * width, width, work.gathered.data() + i * width);
    }
    for (size_t block = 0; block < n_blocks; block += work.step) {
      const size_t blocks = std::min(work.step, n_blocks - block);
      kernel.dots(work.gathered.data(), some.size(), own.codes.bytes(block), blocks, width,
                  work.dots.data());
      for (size_t i = 0; i < some.size(); ++i) {
        Candidates& candidates = work.candidates[some[i]];
        const int32_t* products = work.dots.data() + i * blocks * kLanes;
        kernel.hits(products, own.codes.terms(block), blocks, candidates.query().terms,
                    candidates.limit(), work.hits.data());
        add_hits(candidates, coder, own.codes, block, std::span(work.hits).first(blocks), products,
                 [&](size_t position) { return own.members[position]; });
      }
    }
  }
}

double CellSearch::most_reach(std::span<const float> query, double distance,
                              std::span<const uint32_t> places) const {
  const Coder& coder = store_.coder();
  Vec<int8_t> bytes(coder.width());
  const CodedQuery coded = {coder.encode_query(query.data(), bytes.data()), bytes.data()};
  Vec<float> ranks(store_.n_cells());
  store_.rank(std::span(&coded, 1), ranks, {});
  const double limit = (coder.metric() == Metric::kEuclidean ? distance * distance / 2 : distance) *
                       coded.code.factor;
  const bool products = coder.metric() == Metric::kInnerProduct;
  double most = 0;
  for (const uint32_t place : places) {
    const uint32_t cell = store_.cell_of(place);
    const double radius = radii_[cell], rank = ranks[cell];
    const double length = double{coded.code.terms.length} + coded.code.terms.error;
    const double side = products ? length : std::sqrt(2 * std::max(rank, 0.0));
    const double excess = (products ? rank : rank + radius * radius / 2) - limit;
    const double reach = excess / (side * radius);
    if (std::isfinite(reach)) most = std::max(most, reach);
  }
  return std::min(most, 1.0);
}

}  // namespace dynhac
