// An exact index for any metric: a scan of small codes of all distinct vectors.
//
// codes.h has the codes and their bounds; candidates.h tells why the answer is exact. Codes take a
// quarter of the memory of the vectors. The vectors themselves are read for a few candidates only,
// where the model keeps them, or here if the index is used alone.
//
// Answers follow from the vectors alone: not from the order of updates, the number of threads, or
// the processor. The centre of the codes is the mean of the vectors at some time: it is computed
// again when as many vectors have been added as there were then.

#ifndef DYNHAC_NEIGHBORS_SCAN_H_
#define DYNHAC_NEIGHBORS_SCAN_H_

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/neighbors/candidates.h"
#include "core/neighbors/codes.h"
#include "core/neighbors/distinct_vectors.h"
#include "core/neighbors/index.h"
#include "core/neighbors/metric.h"

namespace dynhac {

class Scan : public NeighborIndex {
 public:
  // The dimension must be > 0.
  Scan(Metric metric, size_t dimension, uint32_t threads, const Kernel& kernel = kernels().front());

  size_t dimension() const { return coder_.dimension(); }
  size_t size() const override { return vectors_.n_slots(); }
  bool intact() const override { return true; }
  size_t memory() const { return vectors_.memory() + codes_.memory(); }

  void read_vectors_from(std::shared_ptr<const VectorRows> rows) override;

  // All or nothing. Throw SlotError, std::invalid_argument if a number is not finite, and what
  // `poll` throws.
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) override;
  void remove(std::span<const int64_t> slots, Poll* poll) override;
  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll) override;

  // All slots, ascending, and their vectors.
  struct Points {
    Vec<int64_t> slots;
    Vec<float> vectors;
  };
  Points points() const;

 private:
  struct Rows;  // of a query that are searched for together, in scan.cc

  void encode_new(size_t first, size_t rows, Poll* poll);
  void search(const Rows& rows) const;
  void scan_blocks(std::span<const int8_t> codes, std::span<Candidates> candidates) const;

  Coder coder_;
  DistinctVectors vectors_;
  CodeBlocks codes_;           // by place
  size_t additions_left_ = 0;  // until the centre is computed again
  mutable Workers workers_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_SCAN_H_
