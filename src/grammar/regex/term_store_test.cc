#include "grammar/regex/term_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_point.h"
#include "grammar/regex/byte_states.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_ranges.h"

namespace kvasir::grammar::term_store_test {
namespace {

using text::regex::CodePointSet;

class TermStoreTest : public testing::Test {
 protected:
  bool has(TermId term, std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto [code_point, size_bytes] = code_point_at(text, at);
      term = derivatives_.next(term, code_point);
      at += size_bytes;
    }
    return store_.is_nullable(term);
  }
  TermId range(char32_t first, char32_t last) { return store_.char_class(CodePointSet::of(first, last)); }

  TermStore store_;
  Derivatives derivatives_{store_};
};

TEST_F(TermStoreTest, EqualPartsAreOneTerm) {
  EXPECT_EQ(store_.literal("ab"), store_.concat(store_.literal("a"), store_.literal("b")));
  EXPECT_EQ(store_.any_of({store_.literal("b"), store_.literal("a")}), range('a', 'b'));
  EXPECT_EQ(store_.complement(store_.complement(store_.literal("a"))), store_.literal("a"));
  EXPECT_EQ(store_.repeat(store_.repeat(range('a', 'z'), 0, kUnbounded), 0, kUnbounded),
            store_.repeat(range('a', 'z'), 0, kUnbounded));
  EXPECT_EQ(store_.all_of({store_.literal("a"), store_.complement(store_.literal("a"))}), kNothing);
}

TEST_F(TermStoreTest, CountersCount) {
  const TermId term = store_.repeat(range('a', 'z'), 2, 4);
  EXPECT_FALSE(has(term, "a"));
  EXPECT_TRUE(has(term, "ab"));
  EXPECT_TRUE(has(term, "abcd"));
  EXPECT_FALSE(has(term, "abcde"));
  EXPECT_FALSE(has(term, "aB"));
}

TEST_F(TermStoreTest, ComplementsAndIntersectionsAreExact) {
  const TermId word = store_.repeat(range('a', 'z'), 1, kUnbounded);
  const TermId no_keyword = store_.without(word, store_.literals({"if", "else"}));
  EXPECT_TRUE(has(no_keyword, "iff"));
  EXPECT_TRUE(has(no_keyword, "i"));
  EXPECT_FALSE(has(no_keyword, "if"));
  EXPECT_FALSE(has(no_keyword, "else"));
  EXPECT_FALSE(has(no_keyword, ""));
  EXPECT_TRUE(has(store_.complement(word), "é"));
}

TEST_F(TermStoreTest, LanguagesWithoutATextAreDead) {
  const TermId even = store_.repeat(store_.literal("aa"), 0, kUnbounded);
  const TermId odd = store_.concat(store_.literal("a"), even);
  const TermId both = store_.all_of({even, odd});
  EXPECT_NE(both, kNothing);
  EXPECT_FALSE(derivatives_.is_alive(both));
  EXPECT_TRUE(derivatives_.is_alive(store_.all_of({even, store_.repeat(range('a', 'b'), 3, 4)})));
  EXPECT_FALSE(derivatives_.is_alive(store_.all_of({even, store_.repeat(range('a', 'b'), 3, 3)})));
}

TEST_F(TermStoreTest, LiteralsShareTheirStarts) {
  const TermId term = store_.literals({"card", "car", "cat", "dog", ""});
  for (const char* text : {"card", "car", "cat", "dog", ""}) EXPECT_TRUE(has(term, text)) << text;
  for (const char* text : {"ca", "cards", "do", "c"}) EXPECT_FALSE(has(term, text)) << text;
}

TEST_F(TermStoreTest, LiteralsThatGoOnAlikeAreOneTerm) {
  const TermId term = store_.literals({"a-on", "a-off", "b-on", "b-off"});
  EXPECT_EQ(derivatives_.next(term, 'a'), derivatives_.next(term, 'b'));
  EXPECT_EQ(derivatives_.next(store_.literals({"xa", "xb"}), 'x'), range('a', 'b'));
  EXPECT_EQ(derivatives_.next(store_.literals({"one", "two"}), 'o'), store_.literal("ne"));
  EXPECT_EQ(store_.without_empty_text(store_.literals({"", "a", "bc"})), store_.literals({"bc", "a"}));
}

TEST_F(TermStoreTest, ManyLiteralsAreOneTermUntilSomebodyWalks) {
  std::vector<std::string> texts;
  for (int i = 0; i < 20'000; ++i) texts.push_back("value " + std::to_string(i));
  const std::size_t num_before = store_.num_terms();
  const TermId term = store_.literals({texts.begin(), texts.end()});
  EXPECT_EQ(store_.num_terms(), num_before + 1);
  EXPECT_TRUE(has(term, "value 19999"));
  EXPECT_FALSE(has(term, "value 20000"));
  EXPECT_LT(store_.num_terms(), num_before + 200);
}

TEST_F(TermStoreTest, WhatIsKnownOfALanguageServesAllWhoAsk) {
  const TermId term = store_.without(store_.repeat(range('a', 'z'), 1, 9), store_.literals({"if", "else"}));
  EXPECT_TRUE(derivatives_.is_alive(term));
  const TermRanges& ranges = derivatives_.of(term);
  const std::size_t num_terms = store_.num_terms();
  Derivatives others(store_);
  EXPECT_TRUE(others.is_alive(term));
  EXPECT_EQ(&others.of(term), &ranges);
  EXPECT_EQ(store_.num_terms(), num_terms);
}

TEST_F(TermStoreTest, RangesThatLeadToTheSameAreCombinedOnce) {
  TermRanges all;
  TermRanges some;
  for (char32_t c = 0; c < 1000; c += 10) {
    all.push_back({c, c + 4, store_.literal("x")});
    some.push_back({c + 2, c + 6, store_.literal("y")});
  }
  std::size_t num_combined = 0;
  const TermRanges both = combine_ranges(std::vector<const TermRanges*>{&all, &some}, [&](std::span<const TermId> targets) {
    ++num_combined;
    return store_.any_of({targets.begin(), targets.end()});
  });
  EXPECT_EQ(both.size(), 300U);
  EXPECT_EQ(both[299].target, store_.literal("y"));
  EXPECT_EQ(num_combined, 4U);
}

TEST_F(TermStoreTest, TheEmptyTextIsTakenOut) {
  const TermId a = store_.optional(store_.literal("a"));
  const TermId b = store_.repeat(store_.literal("b"), 0, 3);
  const TermId term = store_.without_empty_text(store_.concat(a, b));
  for (const char* text : {"a", "b", "ab", "abbb", "bbb"}) EXPECT_TRUE(has(term, text)) << text;
  for (const char* text : {"", "aa", "abbbb"}) EXPECT_FALSE(has(term, text)) << text;
}

TEST_F(TermStoreTest, ClampedCountersReadAlikeUpToTheLength) {
  const TermId term = store_.repeat(range('a', 'z'), 100, 70000);
  const TermId clamped = store_.clamped(term, 10);
  EXPECT_EQ(clamped, store_.clamped(store_.repeat(range('a', 'z'), 99, 69999), 10));
  EXPECT_EQ(store_.clamped(store_.repeat(range('a', 'z'), 0, 9), 10), store_.repeat(range('a', 'z'), 0, 9));
}

TEST_F(TermStoreTest, ALengthThatNoTokenReachesIsForgotten) {
  const TermId word = store_.concat(store_.repeat(range('a', 'z'), 1, kUnbounded), store_.literal("@x"));
  const TermId any = store_.child(store_.any_text());
  const auto within = [&](std::uint32_t max) { return store_.all_of({word, store_.repeat(any, 0, max)}); };
  EXPECT_EQ(store_.clamped(within(255), 10), word);
  EXPECT_EQ(store_.clamped(within(13), 10), word);  // ten characters, and three to an end
  EXPECT_EQ(store_.clamped(within(12), 10), within(12));
  const TermId other = store_.all_of({word, store_.complement(store_.literal("a@x")), store_.repeat(any, 0, 255)});
  EXPECT_EQ(store_.clamped(other, 10), other);
}

// Patterns that are slow or endless where counters are unrolled or states are lists.
TEST_F(TermStoreTest, HostilePatternsStaySmall) {
  const TermId a = store_.literal("a");
  const TermId counted = store_.repeat(store_.repeat(a, 1, 1000), 1, 1000);
  EXPECT_TRUE(has(counted, std::string(5000, 'a')));
  const TermId x = store_.repeat(store_.literal("x"), 1, kUnbounded);
  const TermId nested = store_.concat(store_.repeat(store_.concat(x, x), 1, kUnbounded), store_.literal("y"));
  EXPECT_FALSE(has(nested, std::string(5000, 'x')));
  EXPECT_TRUE(has(nested, std::string(5000, 'x') + "y"));
  EXPECT_FALSE(store_.is_exhausted());
  EXPECT_LT(store_.num_terms(), 25000u);
}

TEST_F(TermStoreTest, AWordIsOneTermWithTheTextOfALiteral) {
  const std::size_t before = store_.num_terms();
  const TermId word = store_.word("key\u00e9");
  EXPECT_EQ(store_.num_terms(), before + 1);
  EXPECT_EQ(store_.word("key\u00e9"), word);
  EXPECT_EQ(store_.word("k"), store_.literal("k"));
  EXPECT_EQ(store_.word(""), kEmptyText);
  const TermId behind = store_.concat(word, store_.any_of({store_.literal("x"), store_.word("yz")}));
  EXPECT_TRUE(has(word, "key\u00e9"));
  EXPECT_FALSE(has(word, "key"));
  EXPECT_TRUE(has(behind, "key\u00e9x"));
  EXPECT_TRUE(has(behind, "key\u00e9yz"));
  EXPECT_FALSE(has(behind, "key\u00e9y"));
}

TEST_F(TermStoreTest, AWordIsWalkedByteByByte) {
  ByteStates states(store_, derivatives_);
  const TermId term = store_.concat(store_.word("a\u00e9b"), store_.word("cd"));
  ByteStateId state = states.start({term, TextForm::kPlain});
  const std::size_t before = store_.num_terms();
  const std::string_view text = "a\u00e9bcd";
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(states.live(state).count(), 1u);
    EXPECT_EQ(states.is_between(state), i != 2) << i;
    EXPECT_FALSE(states.is_accepting(state));
    EXPECT_EQ(states.next(state, 'z'), kDeadState);
    state = states.next(state, static_cast<unsigned char>(text[i]));
  }
  EXPECT_TRUE(states.is_accepting(state));
  EXPECT_TRUE(states.is_final(state));
  EXPECT_EQ(store_.num_terms(), before);
}

TEST(TermStoreLimits, WorkExhaustsTheStoreWhileAGuideIsCompiled) {
  TermStore store(50);
  store.count_work(1'000'000);
  EXPECT_TRUE(store.is_exhausted());
  TermStore compiled(50);
  compiled.end_compile();
  compiled.count_work(1'000'000);
  EXPECT_FALSE(compiled.is_exhausted());
}

TEST(TermStoreLimits, ATermTooManyExhaustsTheStore) {
  TermStore store(50);
  store.literal(std::string(100, 'a') + "b");
  EXPECT_TRUE(store.is_exhausted());
}

}  // namespace
}  // namespace kvasir::grammar::term_store_test
