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
#include "core/hierarchy/subgraph_run.h"

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
  // or not > 0; a vertex u has two parts, sizes or values of least_u; or a row gives it another
  // part or size as its end v.
  PartTable(const HalfEdges& edges, Poll* poll);

  uint32_t parts() const { return static_cast<uint32_t>(parts_.size()) - 1; }
  int64_t name(uint32_t part) const { return vertices_[parts_[part]].part; }

  // Makes a part the content of an empty run; slots are in the order of its vertices, outside
  // vertices follow. Returns the parts of those.
  //
  // Throws std::invalid_argument like the constructor, when a pair is given twice; an edge inside
  // the part lacks its other half, or that has another weight; or an outside vertex has two parts
  // or sizes.
  Vec<int64_t> fill(SubgraphRun& run, uint32_t part);

 private:
  struct Vertex {
    int64_t part, id, size;
    double least;
    uint32_t row;  // the first one
    uint32_t end;  // of its halves, which begin where those of the vertex before end
  };
  struct Half {
    Weight w;
    uint32_t to;  // a vertex of the same part; kNone: outside
    uint32_t row;
  };

  void check_columns() const;
  void check_values(uint32_t row) const;
  void check_same(const Vertex& vertex, uint32_t row) const;
  void find_vertices();
  void sort_vertices();
  void group_halves();
  uint32_t find_end(uint32_t from, uint32_t row) const;
  uint32_t find_outside(SubgraphRun& run, uint32_t row);
  void check_halves(const SubgraphRun& run, uint32_t part) const;
  [[noreturn]] void reject_half(uint32_t row) const;

  std::span<const Half> halves(uint32_t vertex) const {
    const uint32_t begin = vertex == 0 ? 0 : vertices_[vertex - 1].end;
    return std::span(halves_).subspan(begin, vertices_[vertex].end - begin);
  }

  const HalfEdges edges_;
  const uint32_t rows_;
  Pace pace_;
  FlatMap<uint32_t, int64_t> known_;  // where the number of a vertex u is in number_
  Vec<uint32_t> number_;
  Vec<uint32_t> owner_;   // by row: where the number of u is in number_
  Vec<Vertex> vertices_;  // by number
  Vec<uint32_t> parts_;   // the first vertex of each; one more at the end
  Vec<Half> halves_;
  // Of the part that is being filled in.
  FlatMap<uint32_t, int64_t> outside_;  // slots
  Vec<uint32_t> outside_rows_;          // the first that names each
};

}  // namespace dynhac

#endif  // DYNHAC_SUBGRAPH_HALF_EDGES_H_
