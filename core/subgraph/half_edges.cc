#include "core/subgraph/half_edges.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

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

PartTable::PartTable(const HalfEdges& edges, Poll* poll)
    : edges_(edges), rows_(static_cast<uint32_t>(edges.u.size())), pace_(poll) {
  check_columns();
  find_vertices();
  sort_vertices();
  group_halves();
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

void PartTable::check_same(const Vertex& vertex, uint32_t row) const {
  const auto check = [&](const char* name, auto given, auto known) {
    if (given != known) {
      reject("row ", row, ": ", name, " of ", vertex.id, " is ", given, "; it is ", known,
             " in row ", vertex.row);
    }
  };
  check("part", edges_.part[row], vertex.part);
  check("size_u", edges_.size_u[row], vertex.size);
  check("least_u", edges_.least_u[row], vertex.least);
}

// The vertices in the order of their first rows, with the numbers of their halves in `end`.
void PartTable::find_vertices() {
  owner_.resize(rows_);
  for (uint32_t row = 0; row < rows_; ++row) {
    pace_.step(4);
    check_values(row);
    const uint32_t next = static_cast<uint32_t>(vertices_.size());
    const auto [vertex, added] = known_.insert(edges_.u[row], next);
    owner_[row] = *vertex;
    if (added) {
      vertices_.push_back(
          {edges_.part[row], edges_.u[row], edges_.size_u[row], edges_.least_u[row], row, 0});
    } else {
      check_same(vertices_[*vertex], row);
    }
    ++vertices_[*vertex].end;
  }
}

void PartTable::sort_vertices() {
  const uint32_t n = static_cast<uint32_t>(vertices_.size());
  std::sort(vertices_.begin(), vertices_.end(), [](const Vertex& x, const Vertex& y) {
    return std::tie(x.part, x.id) < std::tie(y.part, y.id);
  });
  number_.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    number_[owner_[vertices_[i].row]] = i;
    if (i == 0 || vertices_[i].part != vertices_[i - 1].part) parts_.push_back(i);
  }
  parts_.push_back(n);
}

void PartTable::group_halves() {
  uint32_t total = 0;
  for (Vertex& vertex : vertices_) vertex.end = std::exchange(total, total + vertex.end);
  halves_.resize(rows_);
  for (uint32_t row = 0; row < rows_; ++row) {
    pace_.step(8);
    const uint32_t from = number_[owner_[row]];
    halves_[vertices_[from].end++] = {edges_.w[row], find_end(from, row), row};
  }
  Vec<uint32_t>().swap(owner_);
}

// The end v of a row: a vertex of the same part, or kNone.
uint32_t PartTable::find_end(uint32_t from, uint32_t row) const {
  const bool inside = edges_.other_part[row] == vertices_[from].part;
  const uint32_t* at = known_.find(edges_.v[row]);
  if (at == nullptr) {
    if (inside) reject_half(row);
    return kNone;
  }
  const Vertex& vertex = vertices_[number_[*at]];
  const auto check = [&](const char* name, int64_t given, int64_t known) {
    if (given != known) {
      reject("row ", row, ": ", name, " of ", vertex.id, " is ", given, "; row ", vertex.row,
             " says ", known);
    }
  };
  check("other_part", edges_.other_part[row], vertex.part);
  check("size_v", edges_.size_v[row], vertex.size);
  return inside ? number_[*at] : kNone;
}

Vec<int64_t> PartTable::fill(SubgraphRun& run, uint32_t part) {
  const uint32_t begin = parts_[part], end = parts_[part + 1];
  for (uint32_t v = begin; v < end; ++v) {
    run.add_vertex(vertices_[v].id, vertices_[v].size, vertices_[v].least,
                   static_cast<uint32_t>(halves(v).size()));
  }
  recycle(outside_);
  outside_rows_.clear();
  for (uint32_t v = begin; v < end; ++v) {
    for (const Half& half : halves(v)) {
      pace_.step(8);
      const uint32_t to = half.to == kNone ? find_outside(run, half.row) : half.to - begin;
      if (!run.add_edge(v - begin, to, half.w)) {
        reject("row ", half.row, ": the half edge (", edges_.u[half.row], ", ", edges_.v[half.row],
               ") is given twice; add up the weights of a pair");
      }
    }
  }
  check_halves(run, part);
  Vec<int64_t> parts;
  parts.reserve(outside_rows_.size());
  for (const uint32_t row : outside_rows_) parts.push_back(edges_.other_part[row]);
  return parts;
}

// The slot of the outside end of a row, which is added to the run if it is new.
uint32_t PartTable::find_outside(SubgraphRun& run, uint32_t row) {
  const auto [slot, added] = outside_.insert(edges_.v[row], kNone);
  if (added) {
    *slot = run.add_outside(edges_.v[row], edges_.size_v[row]);
    outside_rows_.push_back(row);
    return *slot;
  }
  const uint32_t first = outside_rows_[*slot - run.active()];
  const auto check = [&](const char* name, const std::span<const int64_t>& column) {
    if (column[row] != column[first]) {
      reject("row ", row, ": ", name, " of ", edges_.v[row], " is ", column[row], "; row ", first,
             " says ", column[first]);
    }
  };
  check("other_part", edges_.other_part);
  check("size_v", edges_.size_v);
  return *slot;
}

void PartTable::check_halves(const SubgraphRun& run, uint32_t part) const {
  const uint32_t begin = parts_[part], end = parts_[part + 1];
  for (uint32_t v = begin; v < end; ++v) {
    for (const Half& half : halves(v)) {
      if (half.to == kNone) continue;
      const Weight* w = run.weight(half.to - begin, v - begin);
      if (w == nullptr) reject_half(half.row);
      if (*w != half.w) {
        reject("row ", half.row, ": w of the edge (", edges_.u[half.row], ", ", edges_.v[half.row],
               ") is ", half.w, "; it is ", *w, " in the row of its other half");
      }
    }
  }
}

void PartTable::reject_half(uint32_t row) const {
  reject("row ", row, ": the edge (", edges_.u[row], ", ", edges_.v[row], ") inside part ",
         edges_.part[row], " has no row (", edges_.v[row], ", ", edges_.u[row],
         "); an edge inside a part has two, one from each end");
}

}  // namespace dynhac
