// A graph in parts, given as half edges.
//
// A row says: u, a vertex of part `part`, has an edge of weight w to v, a vertex of part
// `other_part`. All half edges of a vertex u are given, so an edge inside a part has two rows, one
// from each end. Vertices are clusters of earlier rounds: they have a size, and u has `least_u`,
// the smallest similarity of the merges that made it (infinite for a single point). Ids are names:
// a cluster is named after one of its points.

#ifndef DYNHAC_SUBGRAPH_HALF_EDGES_H_
#define DYNHAC_SUBGRAPH_HALF_EDGES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/subgraph/subgraph_run.h"

namespace dynhac {

struct HalfEdges {
  std::span<const int64_t> part, other_part, u, v, w, size_u, size_v;
  std::span<const double> least_u;
};

// The rows, checked and grouped: parts in ascending order, in a part its vertices in ascending
// order. Parts and vertices are numbered in this order.
class PartTable {
 public:
  // The columns must live as long as the table.
  //
  // Throws std::invalid_argument, which names the row and the value, when columns differ in length;
  // there are 2^32 - 1 rows or more; u == v; a weight or a size is not in 1..2^53; least_u is NaN
  // or not > 0; or a vertex u is in two parts, or has two sizes or two values of least_u.
  PartTable(const HalfEdges& edges, Poll* poll);

  uint32_t parts() const { return static_cast<uint32_t>(parts_.size()) - 1; }
  int64_t name(uint32_t part) const { return parts_[part].name; }

  // Makes a part the content of an empty run; slots are in the order of its vertices, outside
  // vertices follow. Returns the parts of those.
  //
  // Throws std::invalid_argument like the constructor, when a pair is given twice; an edge inside
  // the part lacks its other half, or that has another weight; or an end v has another part or size
  // than elsewhere.
  Vec<int64_t> fill(SubgraphRun& run, uint32_t part);

 private:
  struct Part {
    int64_t name;
    uint32_t vertex;  // the first one
  };
  struct Row {
    int64_t part, u;
    uint32_t row;
  };

  uint32_t first_row(uint32_t vertex) const { return order_[vertices_[vertex]].row; }
  void check_columns() const;
  void check_values(uint32_t row) const;
  void check_same_vertex(uint32_t first, uint32_t row) const;
  uint32_t find_end(SubgraphRun& run, uint32_t part, uint32_t row);
  void check_end(uint32_t row, const char* name, int64_t given, int64_t known,
                 uint32_t elsewhere) const;
  void check_halves(const SubgraphRun& run, uint32_t part) const;
  [[noreturn]] void reject_half(uint32_t row) const;

  const HalfEdges edges_;
  Pace pace_;
  Vec<Row> order_;                    // sorted
  Vec<uint32_t> vertices_;            // where each begins in order_; one more at the end
  Vec<Part> parts_;                   // one more at the end
  FlatMap<uint32_t, int64_t> known_;  // number of a vertex u
  // Of the part that is being filled in.
  FlatMap<uint32_t, int64_t> outside_;  // slots
  Vec<uint32_t> outside_rows_;          // the first that names each
  Vec<uint32_t> ends_;                  // by row: slot of v
};

}  // namespace dynhac

#endif  // DYNHAC_SUBGRAPH_HALF_EDGES_H_
