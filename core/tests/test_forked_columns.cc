// Columns from a forked child: the state as it was at the fork, whatever comes afterwards.

#include <cstdlib>
#include <new>
#include <numeric>
#include <stdexcept>

#include "core/base/forked_columns.h"
#include "core/base/memory.h"
#include "core/tests/testing.h"

namespace dynhac::testing {
namespace {

Vec<int64_t> counted(size_t count) {
  Vec<int64_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(forked_columns_are_those_of_the_moment) {
  Vec<int64_t> live = counted(1'000'000);  // more than a pipe holds
  const Vec<int64_t> before = live;
  const auto column = [&](Workers&) -> AnyColumn { return live; };
  const auto small = [](Workers&) -> AnyColumn { return Vec<uint8_t>{1, 2}; };
  const auto none = [](Workers&) -> AnyColumn { return Vec<float>(); };
  ForkedColumns forked({column, small, none, column});
  for (int64_t& value : live) value = -1;
  EXPECT(std::get<Vec<int64_t>>(forked.next(nullptr)) == before);
  live.clear();
  EXPECT((std::get<Vec<uint8_t>>(forked.next(nullptr)) == Vec<uint8_t>{1, 2}));
  EXPECT(std::get<Vec<float>>(forked.next(nullptr)).empty());
  EXPECT(std::get<Vec<int64_t>>(forked.next(nullptr)) == before);
  EXPECT_THROWS(std::runtime_error, forked.next(nullptr));
}

TEST(forked_columns_tell_what_goes_wrong) {
  const auto no_memory = [](Workers&) -> AnyColumn { throw std::bad_alloc(); };
  const auto failed = [](Workers&) -> AnyColumn { throw std::runtime_error("no"); };
  const auto killed = [](Workers&) -> AnyColumn { std::abort(); };
  EXPECT_THROWS(std::bad_alloc, ForkedColumns({no_memory}).next(nullptr));
  EXPECT_THROWS(std::runtime_error, ForkedColumns({failed}).next(nullptr));
  EXPECT_THROWS(std::runtime_error, ForkedColumns({killed}).next(nullptr));
  const auto allocates = [](Workers&) -> AnyColumn { return counted(10); };
  ForkedColumns forked({allocates, allocates, allocates});
  fail_allocation(1);
  EXPECT_EQ(std::get<Vec<int64_t>>(forked.next(nullptr)).size(), size_t{10});
  EXPECT_THROWS(std::bad_alloc, forked.next(nullptr));
  fail_allocation(-1);
}

TEST(forked_columns_can_be_left) {
  struct Stop : Poll {
    void check() override { throw std::domain_error("stop"); }
  };
  const auto endless = [](Workers&) -> AnyColumn {
    for (volatile bool on = true; on;) {
    }
    return Vec<uint8_t>();
  };
  const auto large = [](Workers&) -> AnyColumn { return counted(1'000'000); };
  Stop stop;
  ForkedColumns forked({endless});
  EXPECT_THROWS(std::domain_error, forked.next(&stop));
  forked.close();
  EXPECT_THROWS(std::logic_error, forked.next(nullptr));
  ForkedColumns unread({large, large});
  EXPECT_EQ(std::get<Vec<int64_t>>(unread.next(nullptr)).size(), size_t{1'000'000});
}

}  // namespace
}  // namespace dynhac::testing
