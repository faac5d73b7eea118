// radix_sort() against std::sort.

#include "core/base/radix_sort.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

struct Record {
  uint64_t key;
  uint32_t mark;
};

TEST(radix_sort_orders_by_the_key) {
  Random random(testing::base_seed());
  for (const size_t count : {0, 1, 2, 64, 65, 300, 5000}) {
    for (const int bits : {1, 7, 20, 64}) {
      for (const int shift : {0, 5, 40}) {
        std::vector<Record> records;
        for (uint32_t i = 0; i < count; ++i) {
          records.push_back({(random.next() >> (64 - bits)) << shift, i});
        }
        std::vector<Record> wanted = records;
        Buffer<Record> buffer;
        radix_sort(std::span(records), buffer, [](const Record& r) { return r.key; });
        const auto by_key = [](const Record& x, const Record& y) { return x.key < y.key; };
        EXPECT(std::is_sorted(records.begin(), records.end(), by_key));
        const auto by_mark = [](const Record& x, const Record& y) { return x.mark < y.mark; };
        std::sort(records.begin(), records.end(), by_mark);
        for (size_t i = 0; i < count; ++i) {
          EXPECT(records[i].key == wanted[i].key && records[i].mark == wanted[i].mark);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dynhac
