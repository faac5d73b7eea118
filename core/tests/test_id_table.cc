// Text ids and their keys, against plain maps, through random transactions that may fail.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/id_table.h"
#include "core/tests/plain.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::fails_at;
using testing::Ids;
using testing::key_of;
using testing::plain;
using testing::Strings;
using testing::texts_of;

Texts texts_of_list(std::initializer_list<std::string> strings) {
  return texts_of(Strings(strings));
}

Vec<int64_t> add(IdTable& table, const Strings& texts) {
  Vec<int64_t> keys = table.reserve(texts_of(texts));
  table.commit({});
  return keys;
}

// A table, and the same ids in maps.
struct IdWorld {
  IdTable table;
  std::map<std::string, int64_t> keys;
  std::map<int64_t, std::string> retired;
  std::set<int64_t> given;      // all keys so far
  std::set<int64_t> forgotten;  // or taken back

  static std::string random_text(Random& random) {
    static const Strings alphabet = {"a",      "b",          "\u00e4",
                                     "\u4e16", "\U0001F600", std::string(1, '\0')};
    std::string text;
    // Few short texts, so that many come again; lengths around the pieces of the hash.
    const int64_t length = random.chance(0.8) ? random.below(3) : 6 + random.below(12);
    while (std::ssize(text) < length) text += alphabet[static_cast<size_t>(random.below(6))];
    if (random.chance(0.02)) text += std::string(static_cast<size_t>(random.below(3000)), 'x');
    return text;
  }

  Strings random_texts(Random& random) const {
    Strings texts(static_cast<size_t>(random.below(9)));
    for (std::string& text : texts) text = random_text(random);
    return texts;
  }

  Ids random_keys(Random& random) const {
    Ids some;
    for (const auto& [text, key] : keys) {
      if (random.chance(0.3)) some.push_back(key);
    }
    random.shuffle(some);
    return some;
  }

  // The keys of `texts` after the table has reserved them. Returns those that are new.
  std::map<std::string, int64_t> expect_reserved(const Strings& texts, const Ids& found) {
    EXPECT_EQ(found.size(), texts.size());
    std::map<std::string, int64_t> fresh;
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto known = keys.find(texts[i]);
      if (known != keys.end()) {
        EXPECT_EQ(found[i], known->second);
      } else if (fresh.contains(texts[i])) {
        EXPECT_EQ(found[i], fresh[texts[i]]);
      } else {
        EXPECT(given.insert(found[i]).second);  // no key is given twice
        fresh[texts[i]] = found[i];
      }
      EXPECT_EQ(key_of(table, texts[i]), found[i]);
    }
    return fresh;
  }

  void expect_same() const {
    EXPECT_EQ(table.size(), keys.size() + retired.size());
    for (const auto& [text, key] : keys) {
      EXPECT_EQ(key_of(table, text), key);
      EXPECT_EQ(plain(table.texts(Ids{key})), Strings{text});
    }
    for (const auto& [key, text] : retired) {
      EXPECT_EQ(plain(table.texts(Ids{key})), Strings{text});
      if (!keys.contains(text)) EXPECT_EQ(key_of(table, text), IdTable::kUnknownKey);
    }
    for (const int64_t key : forgotten) EXPECT_THROWS(std::out_of_range, table.texts(Ids{key}));
    if (!given.empty()) EXPECT(table.next_key() > *given.rbegin());
  }

  void commit(const std::map<std::string, int64_t>& fresh, const Ids& removed) {
    table.commit(removed);
    keys.insert(fresh.begin(), fresh.end());
    for (const int64_t key : removed) {
      const auto at = std::find_if(keys.begin(), keys.end(),
                                   [&](const auto& entry) { return entry.second == key; });
      if (at == keys.end()) continue;
      retired[key] = at->first;
      keys.erase(at);
    }
  }

  void release(const std::map<std::string, int64_t>& fresh) {
    table.release();
    for (const auto& [text, key] : fresh) {
      forgotten.insert(key);
      EXPECT_EQ(key_of(table, text), IdTable::kUnknownKey);
    }
  }

  void forget_retired() {
    table.forget_retired();
    for (const auto& [key, text] : retired) forgotten.insert(key);
    retired.clear();
  }

  void transact(const Strings& texts, Random& random) {
    const auto fresh = expect_reserved(texts, plain(table.reserve(texts_of(texts))));
    if (random.chance(0.3)) {
      release(fresh);
    } else {
      Ids removed = random_keys(random);
      // Keys may be removed in the transaction that gave them; unknown keys are ignored.
      for (const auto& [text, key] : fresh) {
        if (random.chance(0.1)) removed.push_back(key);
      }
      if (random.chance(0.1)) removed.push_back(1'000'000);
      commit(fresh, removed);
    }
    if (random.chance(0.4)) forget_retired();
  }
};

TEST(id_table_through_random_transactions) {
  for (uint64_t round = 0; round < 30; ++round) {
    Random random(testing::base_seed() + round);
    IdWorld world;
    for (int i = 0; i < 100; ++i) {
      world.transact(world.random_texts(random), random);
      if (i % 5 == 0) world.expect_same();
    }
    world.expect_same();

    Ids keys;
    Strings texts;
    for (const auto& [text, key] : world.keys) keys.push_back(key), texts.push_back(text);
    world.forget_retired();
    const IdTable loaded(keys, texts_of(texts), world.table.next_key());
    EXPECT(loaded.used());
    EXPECT_EQ(loaded.size(), keys.size());
    EXPECT_EQ(loaded.next_key(), world.table.next_key());
    EXPECT_EQ(plain(loaded.keys(texts_of(texts))), keys);
    EXPECT_EQ(plain(loaded.texts(keys)), texts);
  }
}

TEST(id_table_after_a_failed_allocation) {
  int64_t failures = 0;
  for (uint64_t round = 0; round < 6; ++round) {
    bool failed = true;
    for (int64_t after = 0; failed; ++after) {
      Random random(testing::base_seed() + round);
      IdWorld world;
      const int64_t transactions = 8 * static_cast<int64_t>(round);
      for (int64_t i = 0; i < transactions; ++i) world.transact(world.random_texts(random), random);
      Strings strings = world.random_texts(random);
      for (int i = 0; i < 40; ++i) strings.push_back("more" + std::to_string(i));
      const Texts texts = texts_of(strings);
      const bool used = world.table.used();
      Vec<int64_t> found;
      failed = fails_at(after, [&] { found = world.table.reserve(texts); });
      failures += failed;
      if (failed) {
        EXPECT_EQ(world.table.used(), used);
        EXPECT_EQ(world.table.size(), world.keys.size() + world.retired.size());
        world.table.release();
        EXPECT_EQ(world.table.used(), used);
        world.expect_same();
        found = world.table.reserve(texts);
      }
      world.commit(world.expect_reserved(strings, plain(found)), {});
      world.expect_same();
      for (int i = 0; i < 10; ++i) world.transact(world.random_texts(random), random);
      world.expect_same();
    }
  }
  EXPECT(failures > 20);
}

TEST(id_table_packs_the_bytes_of_texts) {
  // Long texts come and go beside one that stays. The text that stays must survive the packing,
  // also if an allocation fails next to it.
  IdTable table;
  const std::string stays(5000, 's');
  const int64_t key = add(table, {stays})[0];
  int64_t last = key;
  for (int i = 0; i < 300; ++i) {
    const std::string text = std::to_string(i) + std::string(3000, 'x');
    Vec<int64_t> keys;
    const Texts one = texts_of_list({text});
    for (int64_t after = 0; fails_at(after, [&] { keys = table.reserve(one); }); ++after) {
      EXPECT_EQ(key_of(table, stays), key);
      EXPECT_EQ(plain(table.texts(Ids{key})), Strings{stays});
      EXPECT_EQ(key_of(table, text), IdTable::kUnknownKey);
    }
    EXPECT_EQ(plain(table.texts(keys)), Strings{text});
    table.commit(last == key ? Ids{} : Ids{last});
    last = keys[0];
    if (i % 3 == 0) table.forget_retired();
    EXPECT_EQ(key_of(table, stays), key);
    EXPECT(table.size() <= 5);
  }
  EXPECT_EQ(plain(table.texts(Ids{key, last})), (Strings{stays, "299" + std::string(3000, 'x')}));
}

TEST(id_table_used_after_the_first_commit) {
  IdTable table;
  EXPECT(!table.used());
  table.reserve({});
  table.commit({});
  EXPECT(!table.used());  // no text was reserved
  table.reserve(texts_of_list({"a"}));
  EXPECT(table.used());  // its own update must see it
  table.release();
  EXPECT(!table.used());
  EXPECT_EQ(table.size(), 0);
  EXPECT_EQ(table.reserve(texts_of_list({"a"}))[0], 1);  // key 0 is not given again
  table.commit({});
  EXPECT(table.used());
  table.reserve(texts_of_list({"b"}));
  table.release();
  EXPECT(table.used());
  table.reserve({});
  table.commit(Ids{1});
  table.forget_retired();
  EXPECT_EQ(table.size(), 0);
  EXPECT(table.used());  // also when there are no texts any more
}

TEST(id_table_texts_of_retired_keys) {
  IdTable table;
  EXPECT_EQ(plain(add(table, {"a", "b"})), (Ids{0, 1}));
  table.reserve({});
  table.commit(Ids{0});
  EXPECT_EQ(key_of(table, "a"), IdTable::kUnknownKey);
  EXPECT_EQ(plain(table.keys(texts_of_list({"a", "b"}))), (Ids{IdTable::kUnknownKey, 1}));
  EXPECT_EQ(plain(add(table, {"a"})), Ids{2});  // another "a" beside the one retired
  EXPECT_EQ(plain(table.texts(Ids{0, 1, 2})), (Strings{"a", "b", "a"}));
  EXPECT_EQ(table.size(), 3);
  table.forget_retired();
  EXPECT_EQ(table.size(), 2);
  EXPECT_THROWS(std::out_of_range, table.texts(Ids{0}));
  EXPECT_EQ(plain(table.texts(Ids{1, 2})), (Strings{"b", "a"}));
}

TEST(id_table_of_unusual_texts) {
  const Strings texts = {"",
                         std::string(1, '\0'),
                         std::string(2, '\0'),
                         std::string(8, '\0'),
                         std::string(9, '\0'),
                         "a",
                         std::string("a\0", 2),
                         std::string("a\0b", 3),
                         "\u00e9",
                         "e\u0301",
                         "\u65e5\u672c\u8a9e",
                         "\U0001F600\U0001F601",
                         "\xFF\xFE",
                         std::string(100'000, 'x'),
                         std::string(99'999, 'x') + "y",
                         std::string(99'999, 'x')};
  IdTable table;
  const Vec<int64_t> keys = add(table, texts);
  EXPECT_EQ(table.size(), texts.size());
  EXPECT_EQ(plain(table.texts(keys)), texts);
  EXPECT_EQ(plain(table.keys(texts_of(texts))), plain(keys));
  table.reserve({});
  table.commit(Ids{keys[0], keys[3], keys[13]});
  table.forget_retired();
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool there = i != 0 && i != 3 && i != 13;
    EXPECT_EQ(key_of(table, texts[i]), there ? keys[i] : IdTable::kUnknownKey);
  }
}

// Texts of 16 bytes for which the hash of the table is the same: the second half of each makes up
// for the difference in the first.
Strings colliding_texts(uint64_t count) {
  Strings texts;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t halves[] = {i, 12345 ^ (mix_bits(16 ^ i) + 0x9E3779B97F4A7C15u)};
    std::string text(16, '\0');
    std::memcpy(text.data(), halves, 16);
    texts.push_back(text);
  }
  return texts;
}

TEST(id_table_of_colliding_texts) {
  const Strings texts = colliding_texts(60);
  Random random(testing::base_seed());
  for (int round = 0; round < 20; ++round) {
    IdTable table;
    add(table, {"some", "others", "of", "their", "own"});
    std::map<std::string, int64_t> keys;
    for (int i = 0; i < 60; ++i) {
      Strings some;
      Ids removed;
      for (const std::string& text : texts) {
        if (random.chance(0.2)) some.push_back(text);
        if (keys.contains(text) && random.chance(0.3)) removed.push_back(keys[text]);
      }
      const Vec<int64_t> found = table.reserve(texts_of(some));
      if (random.chance(0.3)) {
        table.release();
      } else {
        table.commit(removed);
        for (size_t j = 0; j < some.size(); ++j) keys[some[j]] = found[j];
        std::erase_if(keys, [&](const auto& entry) {
          return std::find(removed.begin(), removed.end(), entry.second) != removed.end();
        });
      }
      table.forget_retired();
      EXPECT_EQ(table.size(), keys.size() + 5);
      for (const std::string& text : texts) {
        EXPECT_EQ(key_of(table, text), keys.contains(text) ? keys[text] : IdTable::kUnknownKey);
      }
      EXPECT_EQ(key_of(table, "own"), 4);
    }
  }
}

TEST(id_table_states_that_are_wrong) {
  const Texts texts = texts_of_list({"a", "b", "c"});
  const Ids keys = {5, 0, 3};
  const IdTable table(keys, texts, 6);
  EXPECT_EQ(key_of(table, "a"), 5);
  const auto reject = [](const Ids& keys, const Texts& texts, int64_t next_key) {
    EXPECT_THROWS(std::invalid_argument, IdTable(keys, texts, next_key));
  };
  reject(keys, texts, 5);       // 5 would be given again
  reject({5, 0}, texts, 6);     // a key too few
  reject({5, 0, 5}, texts, 6);  // a key twice
  reject({5, 0, -1}, texts, 6);
  reject(keys, texts_of_list({"a", "b", "a"}), 6);
  IdTable empty({}, {}, 7);
  EXPECT(empty.used());
  EXPECT_EQ(plain(add(empty, {"a"})), Ids{7});
}

}  // namespace
}  // namespace dynhac
