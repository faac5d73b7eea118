#include "core/subgraph/half_edges.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace dynhac {
namespace {

template <class... Pieces>
[[noreturn]] void reject(const Pieces&... pieces) {
  std::ostringstream text;
  text.precision(17);
  (text << ... << pieces);
  throw std::invalid_argument(text.str());
}

}  // namespace

PartTable::PartTable(const HalfEdges& edges, Poll* poll) : edges_(edges), pace_(poll) {
  check_columns();
  const uint32_t rows = static_cast<uint32_t>(edges_.u.size());
  order_.reserve(rows);
  for (uint32_t row = 0; row < rows; ++row) {
    check_values(row);
    order_.push_back({edges_.part[row], edges_.u[row], row});
  }
  std::sort(order_.begin(), order_.end(), [](const Row& x, const Row& y) {
    return std::tie(x.part, x.u, x.row) < std::tie(y.part, y.u, y.row);
  });
  for (uint32_t i = 0; i < rows; ++i) {
    pace_.step(4);
    const Row& at = order_[i];
    const bool new_part = i == 0 || at.part != order_[i - 1].part;
    if (!new_part && at.u == order_[i - 1].u) {
      check_same_vertex(order_[vertices_.back()].row, at.row);
      continue;
    }
    const uint32_t vertex = static_cast<uint32_t>(vertices_.size());
    if (new_part) parts_.push_back({at.part, vertex});
    vertices_.push_back(i);
    const auto [number, added] = known_.insert(at.u, vertex);
    if (!added) check_same_vertex(first_row(*number), at.row);
  }
  parts_.push_back({0, static_cast<uint32_t>(vertices_.size())});
  vertices_.push_back(rows);
}

void PartTable::check_columns() const {
  const size_t rows = edges_.u.size();
  const auto check = [rows](const char* name, size_t length) {
    if (length != rows) reject("the column ", name, " has ", length, " rows; u has ", rows);
  };
  check("part", edges_.part.size());
  check("other_part", edges_.other_part.size());
  check("v", edges_.v.size());
  check("w", edges_.w.size());
  check("size_u", edges_.size_u.size());
  check("size_v", edges_.size_v.size());
  check("least_u", edges_.least_u.size());
  if (rows >= kNone) reject("there are ", rows, " rows; there must be less than 2^32 - 1");
}

void PartTable::check_values(uint32_t row) const {
  if (edges_.u[row] == edges_.v[row]) {
    reject("row ", row, ": u and v are both ", edges_.u[row], "; an edge has two different ends");
  }
  const auto check = [row](const char* name, int64_t value) {
    if (value < 1 || value > kLargestSum) {
      reject("row ", row, ": ", name, " is ", value, "; it must be in 1..2^53");
    }
  };
  check("w", edges_.w[row]);
  check("size_u", edges_.size_u[row]);
  check("size_v", edges_.size_v[row]);
  if (!(edges_.least_u[row] > 0)) {
    reject("row ", row, ": least_u is ", edges_.least_u[row],
           "; it must be > 0, and inf for a single point");
  }
}

void PartTable::check_same_vertex(uint32_t first, uint32_t row) const {
  const auto check = [&](const char* name, const auto& column) {
    if (column[row] != column[first]) {
      reject("row ", row, ": ", name, " of ", edges_.u[row], " is ", column[row], "; it is ",
             column[first], " in row ", first);
    }
  };
  check("part", edges_.part);
  check("size_u", edges_.size_u);
  check("least_u", edges_.least_u);
}

Vec<int64_t> PartTable::fill(SubgraphRun& run, uint32_t part) {
  const uint32_t begin = parts_[part].vertex, end = parts_[part + 1].vertex;
  for (uint32_t vertex = begin; vertex < end; ++vertex) {
    const uint32_t row = first_row(vertex);
    run.add_vertex(edges_.u[row], edges_.size_u[row], edges_.least_u[row],
                   vertices_[vertex + 1] - vertices_[vertex]);
  }
  recycle(outside_);
  outside_rows_.clear();
  ends_.clear();
  for (uint32_t vertex = begin; vertex < end; ++vertex) {
    for (uint32_t i = vertices_[vertex]; i < vertices_[vertex + 1]; ++i) {
      pace_.step(8);
      const uint32_t row = order_[i].row;
      const uint32_t to = find_end(run, part, row);
      if (!run.add_edge(vertex - begin, to, edges_.w[row])) {
        reject("row ", row, ": the half edge (", edges_.u[row], ", ", edges_.v[row],
               ") is given twice; add up the weights of a pair");
      }
      ends_.push_back(to);
    }
  }
  check_halves(run, part);
  Vec<int64_t> parts;
  parts.reserve(outside_rows_.size());
  for (const uint32_t row : outside_rows_) parts.push_back(edges_.other_part[row]);
  return parts;
}

// The slot of the end v of a row, which is added to the run if it is new.
uint32_t PartTable::find_end(SubgraphRun& run, uint32_t part, uint32_t row) {
  const int64_t v = edges_.v[row], other = edges_.other_part[row];
  if (const uint32_t* vertex = known_.find(v)) {
    const uint32_t first = first_row(*vertex);
    check_end(row, "other_part", other, edges_.part[first], first);
    check_end(row, "size_v", edges_.size_v[row], edges_.size_u[first], first);
    if (other == parts_[part].name) return *vertex - parts_[part].vertex;
  } else if (other == parts_[part].name) {
    reject_half(row);
  }
  const auto [slot, added] = outside_.insert(v, kNone);
  if (added) {
    *slot = run.add_outside(v, edges_.size_v[row]);
    outside_rows_.push_back(row);
  } else {
    const uint32_t first = outside_rows_[*slot - run.active()];
    check_end(row, "other_part", other, edges_.other_part[first], first);
    check_end(row, "size_v", edges_.size_v[row], edges_.size_v[first], first);
  }
  return *slot;
}

void PartTable::check_end(uint32_t row, const char* name, int64_t given, int64_t known,
                          uint32_t elsewhere) const {
  if (given == known) return;
  reject("row ", row, ": ", name, " of ", edges_.v[row], " is ", given, "; row ", elsewhere,
         " says ", known);
}

void PartTable::reject_half(uint32_t row) const {
  reject("row ", row, ": the edge (", edges_.u[row], ", ", edges_.v[row], ") inside part ",
         edges_.part[row], " has no row (", edges_.v[row], ", ", edges_.u[row],
         "); an edge inside a part has two, one from each end");
}

void PartTable::check_halves(const SubgraphRun& run, uint32_t part) const {
  const uint32_t begin = parts_[part].vertex, end = parts_[part + 1].vertex;
  const uint32_t first = vertices_[begin];
  for (uint32_t vertex = begin; vertex < end; ++vertex) {
    for (uint32_t i = vertices_[vertex]; i < vertices_[vertex + 1]; ++i) {
      const uint32_t to = ends_[i - first], row = order_[i].row;
      if (!run.is_active(to)) continue;
      const Weight* w = run.weight(to, vertex - begin);
      if (w == nullptr) reject_half(row);
      if (*w != edges_.w[row]) {
        reject("row ", row, ": w of the edge (", edges_.u[row], ", ", edges_.v[row], ") is ",
               edges_.w[row], "; it is ", *w, " in the row of its other half");
      }
    }
  }
}

}  // namespace dynhac
