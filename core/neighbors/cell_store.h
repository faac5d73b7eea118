// Vectors in cells: groups of near vectors, each with a centre, and with its codes in blocks.
//
// Cells are numbered 0, 1, ...; when one is dropped, the last one takes its number. A cell has its
// members at positions 0, 1, ..., in blocks of codes (see codes.h). All cells, and their centres,
// are coded by one Coder, so that one code of a query serves for all.
//
// Distances between a vector and a centre are those of the *space* of the Coder: of vectors times
// its multiplier, which have length 1 for cosine. With inner products, too, cells are made by
// Euclidean distance; only the ranks of centres for a query are of another kind.
//
// A member need not be in the cell with the nearest centre.
//
// Invariants:
// - A place that is held is a member of one cell: cells_[cell_of_[p]].members[position_[p]] == p.
// - No member is farther from the centre than `radius`, in exact arithmetic; `spread` is the sum of
//   the squared distances of all members, up to rounding.
// - Nothing depends on the numbers of places, or on how much room there is.

#ifndef DYNHAC_NEIGHBORS_CELL_STORE_H_
#define DYNHAC_NEIGHBORS_CELL_STORE_H_

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>

#include "core/base/memory.h"
#include "core/neighbors/codes.h"
#include "core/neighbors/distinct_vectors.h"

namespace dynhac {

struct Cell {
  explicit Cell(size_t width) : codes(width) {}

  size_t size() const { return members.size(); }
  double mean_square() const { return size() == 0 ? 0 : spread / static_cast<double>(size()); }

  CodeBlocks codes;       // by position
  Vec<uint32_t> members;  // places, by position
  double spread = 0;
  double radius = 0;
  uint64_t changes = 0;   // additions and removals since the centre was computed
  double multiplier = 0;  // of the centre
  float half = 0;         // with inner products half the square of the centre's length, else 0
};

// A query for which centres are ranked.
struct CodedQuery {
  QueryCode code;
  const int8_t* bytes;
};

class CellStore {
 public:
  // `vectors` must outlive the store.
  CellStore(Coder coder, const DistinctVectors& vectors)
      : coder_(std::move(coder)), vectors_(&vectors), centre_codes_(coder_.width()) {}

  const Coder& coder() const { return coder_; }
  size_t n_cells() const { return cells_.size(); }
  const Cell& cell(size_t number) const { return cells_[number]; }
  std::span<const float> centre(size_t cell) const {
    return std::span(centres_).subspan(cell * coder_.dimension(), coder_.dimension());
  }
  uint32_t cell_of(uint32_t place) const { return cell_of_[place]; }
  uint32_t position_of(uint32_t place) const { return position_[place]; }
  const float* row(uint32_t place) const { return vectors_->row(place); }
  // How far a vector is from the centre of a cell.
  double distance(size_t cell, const float* vector) const noexcept;

  // All or nothing: room for places, and for members of a cell.
  void reserve_places(size_t count);
  void reserve_members(size_t cell, size_t count);
  // Gives back room of a cell that has much more than it needs, if there is memory to do so.
  void trim_members(size_t cell) noexcept;
  // There are this many places from now on, for which there must be room. New ones are no members.
  void resize_places(size_t count) noexcept {
    cell_of_.resize(count, kNone);
    position_.resize(count, kNone);
  }

  // All or nothing.
  size_t add_cell(std::span<const float> centre);
  // Drops a cell without members.
  void drop_cell(size_t cell) noexcept;
  // Sets a new centre, without changing what is known of members.
  void set_centre(size_t cell, std::span<const float> centre) noexcept;
  // Moves the centre to the mean of the members. `sums` has room for as many as dimensions.
  void recentre(size_t cell, std::span<double> sums) noexcept;
  // As `recentre`, of given vectors: writes the mean, as a centre.
  template <class Vectors>
  void mean_of(const Vectors& vectors, std::span<double> sums,
               std::span<float> mean) const noexcept;

  // A cell must have room for its new member.
  void put(uint32_t place, size_t cell) noexcept;
  void take(uint32_t place) noexcept;
  void move(uint32_t place, size_t cell) noexcept;
  void rename(uint32_t from, uint32_t to) noexcept;  // a place
  // The same as many `put`, in two steps. `encode` may run for several cells at a time.
  void put_uncoded(uint32_t place, size_t cell) noexcept;
  void encode(size_t cell) noexcept;

  // Codes everything by another coder.
  void recode(Coder coder) noexcept;

  // For up to kQueriesAtOnce queries, whose codes follow each other: ranks[query * n_cells + cell]
  // is the rank of a centre, up to an error that the codes have. See codes.h. `lowest` (may be
  // empty): a lower bound instead, -infinity if there is none.
  void rank(std::span<const CodedQuery> queries, std::span<float> ranks,
            std::span<float> lowest) const;
  // The cell whose centre is nearest to each of these vectors, the first one of several. A cell
  // that is `excluded` is not found.
  void find_cells(std::span<const uint32_t> places, std::span<uint32_t> cells,
                  uint32_t excluded = kNone) const;

  // What is known of a cell is restored by load().
  struct Known {
    double spread, radius;
    uint64_t changes;
  };
  void set_known(size_t cell, const Known& known) noexcept;
  // Whether no member is farther from the centre than the radius.
  bool covers_members(size_t cell) const noexcept;

  size_t memory() const;

 private:
  void update_codes_of_centre(size_t cell) noexcept;
  void note(Cell& cell, double distance) noexcept;

  Coder coder_;
  const DistinctVectors* vectors_;
  Vec<Cell> cells_;
  CodeBlocks centre_codes_;  // by cell
  Vec<float> centres_;       // not multiplied, by cell
  Vec<uint32_t> cell_of_, position_;
};

template <class Vectors>
void CellStore::mean_of(const Vectors& vectors, std::span<double> sums,
                        std::span<float> mean) const noexcept {
  std::ranges::fill(sums, 0);
  size_t count = 0;
  for (const float* vector : vectors) {
    const double scale = coder_.multiplier(vector) / coder_.unit();
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += vector[j] * scale;
    ++count;
  }
  for (size_t j = 0; j < sums.size(); ++j) {
    mean[j] = static_cast<float>(sums[j] / static_cast<double>(count));
  }
}

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_CELL_STORE_H_
