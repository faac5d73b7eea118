#include "core/neighbors/cell_store.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

namespace dynhac {
namespace {

constexpr double kSlack = 0x1p-20;  // more than the rounding errors of a distance, in proportion
constexpr size_t kSums = 8;         // partial sums, which the compiler vectorises
constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A little more than needed, since a cell grows by one member at a time.
size_t with_spare(size_t count) {
  return count + count / 8;
}

}  // namespace

double CellStore::distance(size_t cell, const float* vector) const noexcept {
  const float* centre = centres_.data() + cell * coder_.dimension();
  const double scale = coder_.multiplier(vector), own = cells_[cell].multiplier;
  const size_t dimension = coder_.dimension();
  double sums[kSums] = {};
  const auto add = [&](size_t j, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const double side = vector[j + i] * scale - centre[j + i] * own;
      sums[i] += side * side;
    }
  };
  size_t j = 0;
  for (; j + kSums <= dimension; j += kSums) add(j, kSums);
  add(j, dimension - j);
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

void CellStore::reserve_places(size_t count) {
  for (Vec<uint32_t>* column : {&cell_of_, &position_}) {
    if (count > column->capacity()) column->reserve(with_spare(count));
  }
}

void CellStore::reserve_members(size_t cell, size_t count) {
  Cell& own = cells_[cell];
  if (count > own.members.capacity()) own.members.reserve(with_spare(count));
  if (count > own.codes.room()) own.codes.reserve(with_spare(count), true);
}

void CellStore::trim_members(size_t cell) noexcept {
  Cell& own = cells_[cell];
  const size_t wanted = with_spare(own.size()) + kLanes;
  if (own.codes.room() <= wanted + wanted / 8) return;
  try {
    CodeBlocks codes(coder_.width());
    codes.reserve(wanted, true);
    codes.resize(own.size());
    for (size_t position = 0; position < own.size(); ++position) {
      codes.copy(own.codes, position, position);
    }
    Vec<uint32_t> members;
    members.reserve(wanted);
    members.assign(own.members.begin(), own.members.end());
    own.codes = std::move(codes);
    own.members.swap(members);
  } catch (const std::bad_alloc&) {
    // The cell keeps its room.
  }
}

size_t CellStore::add_cell(std::span<const float> centre) {
  const size_t cell = cells_.size();
  centre_codes_.reserve(cell + 1);
  if (cell == cells_.capacity()) cells_.reserve(2 * cell + 1);
  centres_.insert(centres_.end(), centre.begin(), centre.end());
  cells_.emplace_back(coder_.width());
  centre_codes_.resize(cell + 1);
  update_codes_of_centre(cell);
  return cell;
}

void CellStore::drop_cell(size_t cell) noexcept {
  const size_t last = cells_.size() - 1;
  if (cell != last) {
    cells_[cell] = std::move(cells_[last]);
    for (const uint32_t place : cells_[cell].members) cell_of_[place] = static_cast<uint32_t>(cell);
    std::ranges::copy(centre(last),
                      centres_.begin() + static_cast<ptrdiff_t>(cell * coder_.dimension()));
    centre_codes_.move(last, cell);
  }
  cells_.pop_back();
  centres_.resize(last * coder_.dimension());
  centre_codes_.resize(last);
}

void CellStore::set_centre(size_t cell, std::span<const float> centre) noexcept {
  std::ranges::copy(centre, centres_.begin() + static_cast<ptrdiff_t>(cell * coder_.dimension()));
  update_codes_of_centre(cell);
}

void CellStore::update_codes_of_centre(size_t cell) noexcept {
  const float* vector = centre(cell).data();
  Cell& own = cells_[cell];
  coder_.encode(vector, centre_codes_, cell);
  own.multiplier = coder_.multiplier(vector);
  if (coder_.metric() != Metric::kInnerProduct) return;
  double square = 0;
  for (const float number : centre(cell)) square += double{number} * number;
  own.half = static_cast<float>(square * own.multiplier * own.multiplier / 2);
}

void CellStore::note(Cell& cell, double distance) noexcept {
  cell.spread += distance * distance;
  cell.radius = std::max(cell.radius, distance * (1 + kSlack) + kSlack);
}

void CellStore::recentre(size_t cell, std::span<double> sums) noexcept {
  Cell& own = cells_[cell];
  if (own.size() > 0) {
    const std::span mean(centres_.data() + cell * coder_.dimension(), coder_.dimension());
    mean_of(own.members | std::views::transform([&](uint32_t place) { return row(place); }), sums,
            mean);
    update_codes_of_centre(cell);
  }
  own.spread = own.radius = 0;
  own.changes = 0;
  for (const uint32_t place : own.members) note(own, distance(cell, row(place)));
}

void CellStore::put_uncoded(uint32_t place, size_t cell) noexcept {
  Cell& own = cells_[cell];
  cell_of_[place] = static_cast<uint32_t>(cell);
  position_[place] = static_cast<uint32_t>(own.size());
  own.members.push_back(place);
}

void CellStore::encode(size_t cell) noexcept {
  Cell& own = cells_[cell];
  own.codes.resize(own.size());
  for (size_t position = 0; position < own.size(); ++position) {
    coder_.encode(row(own.members[position]), own.codes, position);
  }
}

void CellStore::put(uint32_t place, size_t cell) noexcept {
  Cell& own = cells_[cell];
  put_uncoded(place, cell);
  own.codes.resize(own.size());
  coder_.encode(row(place), own.codes, own.size() - 1);
  note(own, distance(cell, row(place)));
  ++own.changes;
}

void CellStore::take(uint32_t place) noexcept {
  const uint32_t cell = std::exchange(cell_of_[place], kNone);
  const uint32_t position = std::exchange(position_[place], kNone);
  Cell& own = cells_[cell];
  const double far = distance(cell, row(place));
  own.spread = std::max(own.spread - far * far, 0.0);
  ++own.changes;
  const size_t last = own.size() - 1;
  if (position != last) {
    own.codes.move(last, position);
    own.members[position] = own.members[last];
    position_[own.members[position]] = position;
  }
  own.members.pop_back();
  own.codes.resize(last);
}

void CellStore::move(uint32_t place, size_t cell) noexcept {
  const Cell& from = cells_[cell_of_[place]];
  Cell& to = cells_[cell];
  to.codes.resize(to.size() + 1);
  to.codes.copy(from.codes, position_[place], to.size());
  take(place);
  put_uncoded(place, cell);
  note(to, distance(cell, row(place)));
  ++to.changes;
}

void CellStore::rename(uint32_t from, uint32_t to) noexcept {
  cell_of_[to] = std::exchange(cell_of_[from], kNone);
  position_[to] = std::exchange(position_[from], kNone);
  cells_[cell_of_[to]].members[position_[to]] = to;
}

void CellStore::recode(Coder coder) noexcept {
  const double change = coder.unit() / coder_.unit();
  coder_ = std::move(coder);
  for (size_t cell = 0; cell < cells_.size(); ++cell) {
    Cell& own = cells_[cell];
    encode(cell);
    update_codes_of_centre(cell);
    own.spread *= change * change;
    own.radius *= change;
  }
}

void CellStore::set_known(size_t cell, const Known& known) noexcept {
  cells_[cell].spread = known.spread;
  cells_[cell].radius = known.radius;
  cells_[cell].changes = known.changes;
}

bool CellStore::covers_members(size_t cell) const noexcept {
  return std::ranges::all_of(cells_[cell].members, [&](uint32_t place) {
    return distance(cell, row(place)) * (1 + kSlack / 2) <= cells_[cell].radius;
  });
}

void CellStore::rank(std::span<const CodedQuery> queries, std::span<float> ranks,
                     std::span<float> lowest) const {
  const size_t n_blocks = centre_codes_.n_blocks(), width = coder_.width();
  Vec<int32_t> dots(queries.size() * n_blocks * kLanes);
  coder_.kernel().dots(queries.front().bytes, queries.size(), centre_codes_.bytes(0), n_blocks,
                       width, dots.data());
  for (size_t i = 0; i < queries.size(); ++i) {
    const QueryTerms& terms = queries[i].code.terms;
    const auto offset = static_cast<float>(queries[i].code.offset);
    const auto slack = static_cast<float>(queries[i].code.slack);
    for (size_t block = 0; block < n_blocks; ++block) {
      const BlockTerms& own = *centre_codes_.terms(block);
      const int32_t* products = dots.data() + (i * n_blocks + block) * kLanes;
      const size_t begin = block * kLanes, count = std::min(kLanes, n_cells() - begin);
      float* found = ranks.data() + i * n_cells() + begin;
      float estimates[kLanes], bounds[kLanes];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const float product = static_cast<float>(products[lane]) * own.scale[lane] * terms.scale;
        estimates[lane] = (own.low[lane] - product) + offset;
        bounds[lane] = own.error[lane] * terms.length + own.length[lane] * terms.error;
      }
      std::copy_n(estimates, count, found);
      if (lowest.empty()) continue;
      float* low = lowest.data() + i * n_cells() + begin;
      for (size_t lane = 0; lane < count; ++lane) {
        const float size = std::fabs(estimates[lane]) + std::fabs(offset);
        const float bound = estimates[lane] - bounds[lane] - (slack + 0x1p-20f * size);
        low[lane] = bound > -kInfinite ? bound : -kInfinite;
      }
    }
  }
}

void CellStore::find_cells(std::span<const uint32_t> places, std::span<uint32_t> cells,
                           uint32_t excluded) const {
  const size_t width = coder_.width();
  Vec<int8_t> bytes(kQueriesAtOnce * width);
  Vec<float> ranks(kQueriesAtOnce * n_cells());
  CodedQuery queries[kQueriesAtOnce];
  for (size_t begin = 0; begin < places.size(); begin += kQueriesAtOnce) {
    const size_t count = std::min(kQueriesAtOnce, places.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      int8_t* own = bytes.data() + i * width;
      queries[i] = {coder_.encode_query(row(places[begin + i]), own), own};
    }
    rank(std::span(queries).first(count), ranks, {});
    for (size_t i = 0; i < count; ++i) {
      const float* own = ranks.data() + i * n_cells();
      size_t best = excluded == 0 ? 1 : 0;
      for (size_t cell = best + 1; cell < n_cells(); ++cell) {
        if (own[cell] + cells_[cell].half < own[best] + cells_[best].half && cell != excluded) {
          best = cell;
        }
      }
      cells[begin + i] = static_cast<uint32_t>(best);
    }
  }
}

size_t CellStore::memory() const {
  size_t bytes = centre_codes_.memory() + centres_.capacity() * sizeof(float) +
                 (cell_of_.capacity() + position_.capacity()) * sizeof(uint32_t) +
                 cells_.capacity() * sizeof(Cell);
  for (const Cell& cell : cells_) {
    bytes += cell.codes.memory() + cell.members.capacity() * sizeof(uint32_t);
  }
  return bytes;
}

}  // namespace dynhac
