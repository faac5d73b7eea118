// Columns of the core as plain vectors, and failed allocations at every point of a call.

#ifndef DYNHAC_TESTS_PLAIN_H_
#define DYNHAC_TESTS_PLAIN_H_

#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/id_table.h"
#include "core/base/memory.h"
#include "core/base/texts.h"

namespace dynhac::testing {

using Ids = std::vector<int64_t>;
using Strings = std::vector<std::string>;
using Pair = std::pair<int64_t, int64_t>;

template <class T>
std::vector<T> plain(const Vec<T>& values) {
  return {values.begin(), values.end()};
}

inline Strings plain(const Texts& texts) {
  Strings strings;
  for (size_t i = 0; i < texts.size(); ++i) strings.emplace_back(texts[i]);
  return strings;
}

inline Texts texts_of(std::span<const std::string> strings) {
  Texts texts;
  for (const std::string& string : strings) texts.push_back(string);
  return texts;
}

inline int64_t key_of(const IdTable& table, std::string_view text) {
  Texts texts;
  texts.push_back(text);
  return table.keys(texts)[0];
}

// Calls `attempt` with allocation `after` failing. Returns whether it did fail.
template <class Attempt>
bool fails_at(int64_t after, Attempt attempt) {
  fail_allocation(after);
  try {
    attempt();
  } catch (const std::bad_alloc&) {
    fail_allocation(-1);
    return true;
  }
  fail_allocation(-1);
  return false;
}

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_PLAIN_H_
