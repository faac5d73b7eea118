#include "core/neighbors/scan.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/base/polled_loop.h"

namespace dynhac {
namespace {

constexpr size_t kMostRows = 256;         // searched for together, on one thread
constexpr size_t kBytesAtOnce = 1 << 17;  // of codes, which stay in the cache for all rows
constexpr size_t kMostBlocks = 64;        // at once
constexpr size_t kPlacesAtOnce = 1024;    // coded on one thread

}  // namespace

struct Scan::Rows {
  std::span<const float> vectors;
  size_t k;
  std::span<int64_t> slots;
  std::span<double> distances;
};

Scan::Scan(Metric metric, size_t dimension, uint32_t threads, const Kernel& kernel)
    : coder_(metric, dimension, kernel),
      vectors_(dimension),
      codes_(coder_.width()),
      workers_(threads) {}

void Scan::read_vectors_from(std::shared_ptr<const VectorRows> rows) {
  if (size() > 0) throw std::logic_error("an index that has vectors was given others");
  vectors_ = DistinctVectors(dimension());
  vectors_.read_from(std::move(rows));
}

void Scan::add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) {
  if (vectors.size() != slots.size() * dimension()) throw std::invalid_argument("vectors");
  vectors_.require_new(slots);
  require_finite(vectors, dimension());
  if (slots.empty()) return;
  vectors_.reserve(slots);
  const size_t first = vectors_.n_places();
  size_t added = 0;
  try {
    Pace pace(poll);
    for (; added < slots.size(); ++added) {
      vectors_.add(slots[added], vectors.data() + added * dimension());
      pace.step(dimension());
    }
    encode_new(first, slots.size(), poll);
  } catch (...) {
    while (added > 0) vectors_.remove(slots[--added]);
    throw;
  }
}

// Codes the places from `first` on; all of them if there is a new centre.
void Scan::encode_new(size_t first, size_t rows, Poll* poll) {
  const size_t count = vectors_.n_places(), new_places = count - first;
  if (new_places == 0) return;
  const auto encode = [&](const Coder& coder, CodeBlocks& codes, size_t begin) {
    const size_t pieces = (count - begin + kPlacesAtOnce - 1) / kPlacesAtOnce;
    run_polled(workers_, pieces, rows, poll, [&](size_t piece) {
      const size_t from = begin + piece * kPlacesAtOnce;
      for (size_t place = from; place < std::min(from + kPlacesAtOnce, count); ++place) {
        coder.encode(vectors_.row(static_cast<int64_t>(place)), codes, place);
      }
    });
  };
  if (new_places <= additions_left_) {
    codes_.reserve(count);
    codes_.resize(count);
    try {
      encode(coder_, codes_, first);
    } catch (...) {
      codes_.resize(first);
      throw;
    }
    additions_left_ -= new_places;
    return;
  }
  Coder coder(coder_.metric(), dimension(), coder_.kernel());
  coder.centre_on(vectors_, count);
  CodeBlocks codes(coder.width());
  codes.reserve(std::max(count, codes_.room()));
  codes.resize(count);
  encode(coder, codes, 0);
  coder_ = std::move(coder);
  codes_ = std::move(codes);
  additions_left_ = count;
}

void Scan::remove(std::span<const int64_t> slots, Poll* poll) {
  vectors_.require_held(slots);
  if (poll != nullptr) poll->check();
  for (const int64_t slot : slots) {
    const DistinctVectors::Removed removed = vectors_.remove(slot);
    if (removed.place == kNone) continue;
    if (removed.moved != kNone) codes_.move(removed.moved, removed.place);
    codes_.resize(vectors_.n_places());
  }
}

void Scan::query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
                 std::span<double> distances, Poll* poll) {
  if (vectors.size() % dimension() != 0) throw std::invalid_argument("vectors");
  require_finite(vectors, dimension());
  const size_t n = vectors.size() / dimension();
  if (slots.size() != n * k || distances.size() != n * k) throw std::invalid_argument("answers");
  if (k == 0) return;
  // A part for every thread also of a small batch, as long as kernels have the rows they are
  // fastest for.
  const size_t share = (n + workers_.count() - 1) / workers_.count();
  const size_t step = std::clamp(share, kQueriesAtOnce, kMostRows);
  const size_t pieces = (n + step - 1) / step;
  run_polled(workers_, pieces, n, poll, [&](size_t piece) {
    const size_t begin = piece * step, count = std::min(step, n - begin);
    search({vectors.subspan(begin * dimension(), count * dimension()), k,
            slots.subspan(begin * k, count * k), distances.subspan(begin * k, count * k)});
  });
}

void Scan::search(const Rows& rows) const {
  const size_t n = rows.vectors.size() / dimension(), width = coder_.width();
  const auto distance_from = [&](size_t row) {
    return DistanceFrom(coder_.metric(), rows.vectors.subspan(row * dimension(), dimension()),
                        coder_.kernel());
  };
  Vec<int8_t> codes(n * width);
  Vec<Candidates> candidates;
  Vec<size_t> searched;  // rows
  candidates.reserve(n);
  searched.reserve(n);
  for (size_t row = 0; row < n; ++row) {
    const float* vector = rows.vectors.data() + row * dimension();
    if (const auto distance = distance_from(row).to_all()) {
      first_slots(vectors_, *distance, rows.slots.subspan(row * rows.k, rows.k),
                  rows.distances.subspan(row * rows.k, rows.k));
      continue;
    }
    const QueryCode query = coder_.encode_query(vector, codes.data() + searched.size() * width);
    candidates.emplace_back(query, rows.k);
    searched.push_back(row);
  }
  scan_blocks(codes, candidates);
  for (size_t i = 0; i < searched.size(); ++i) {
    const size_t row = searched[i];
    nearest(candidates[i], distance_from(row), vectors_, rows.slots.subspan(row * rows.k, rows.k),
            rows.distances.subspan(row * rows.k, rows.k));
  }
}

void Scan::scan_blocks(std::span<const int8_t> codes, std::span<Candidates> candidates) const {
  const Kernel& kernel = coder_.kernel();
  const size_t width = coder_.width(), n_blocks = codes_.n_blocks();
  const size_t step = std::clamp<size_t>(kBytesAtOnce / (kLanes * width), 1, kMostBlocks);
  Vec<int32_t> dots(kQueriesAtOnce * step * kLanes);
  Vec<uint16_t> hits(step);
  for (size_t block = 0; block < n_blocks; block += step) {
    const size_t blocks = std::min(step, n_blocks - block);
    for (size_t row = 0; row < candidates.size(); row += kQueriesAtOnce) {
      const size_t rows = std::min(kQueriesAtOnce, candidates.size() - row);
      kernel.dots(codes.data() + row * width, rows, codes_.bytes(block), blocks, width,
                  dots.data());
      for (size_t i = 0; i < rows; ++i) {
        Candidates& own = candidates[row + i];
        const int32_t* products = dots.data() + i * blocks * kLanes;
        kernel.hits(products, codes_.terms(block), blocks, own.query().terms, own.limit(),
                    hits.data());
        add_hits(own, coder_, codes_, block, std::span(hits).first(blocks), products,
                 [](size_t position) { return static_cast<uint32_t>(position); });
      }
    }
  }
}

Scan::Points Scan::points() const {
  Points points;
  points.slots.reserve(size());
  points.vectors.reserve(size() * dimension());
  for (size_t slot = 0; slot < vectors_.top(); ++slot) {
    const uint32_t place = vectors_.place_of(static_cast<int64_t>(slot));
    if (place == kNone) continue;
    const float* vector = vectors_.row(place);
    points.slots.push_back(static_cast<int64_t>(slot));
    points.vectors.insert(points.vectors.end(), vector, vector + dimension());
  }
  return points;
}

}  // namespace dynhac
