#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar::term_runs_test {
namespace {

using text::regex::CodePointSet;

constexpr std::uint32_t kMaxCharacters = 63;
using Lengths = std::bitset<kMaxCharacters + 1>;  // which numbers of characters texts have

Lengths sums(const Lengths& a, const Lengths& b) {
  Lengths result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a.test(i)) result |= b << i;
  }
  return result;
}

// A language beside the lengths of its texts, which are made without looking at the language.
struct Sample {
  TermId term = kNothing;
  Lengths lengths;
};

class TermRunsTest : public testing::Test {
 protected:
  std::uint32_t below(std::uint32_t end) { return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_); }
  TermId any_character() { return store_.char_class(CodePointSet::of(0, kLastCodePoint)); }
  TermId any(std::uint32_t min, std::uint32_t max) { return store_.repeat(any_character(), min, max); }

  Sample leaf() {
    switch (below(5)) {
      case 0: return {kEmptyText, Lengths(1)};
      case 1: return {any_character(), Lengths(2)};
      case 2: return {store_.literal("abc"), Lengths(8)};
      case 3: return {store_.literals({"a", "bcd", "xyzuv"}), Lengths(0b101010)};
      default: return {store_.char_class(CodePointSet::of('a', static_cast<char32_t>('b' + below(4)))), Lengths(2)};
    }
  }

  Sample repeated(const Sample& part) {
    const std::uint32_t min = below(4);
    const std::uint32_t max = below(4) == 0 ? kUnbounded : min + below(5);
    Sample result = {store_.repeat(part.term, min, max), {}};
    Lengths power(1);
    for (std::uint32_t i = 0; i <= std::min(max, kMaxCharacters); ++i, power = sums(power, part.lengths)) {
      if (i >= min) result.lengths |= power;
    }
    return result;
  }

  Sample sample(std::uint32_t depth) {
    if (depth == 0) return leaf();
    const Sample first = sample(depth - 1);
    switch (below(4)) {
      case 0: return repeated(first);
      case 1: {
        const Sample second = sample(depth - 1);
        return {store_.any_of({first.term, second.term}), first.lengths | second.lengths};
      }
      case 2: {
        const std::uint32_t min = below(6);
        const std::uint32_t max = min + below(12);
        Lengths lengths = first.lengths;
        for (std::uint32_t i = 0; i < lengths.size(); ++i) lengths[i] = lengths[i] && i >= min && i <= max;
        return {store_.all_of({first.term, any(min, max)}), lengths};
      }
      default: {
        const Sample second = sample(depth - 1);
        return {store_.concat(first.term, second.term), sums(first.lengths, second.lengths)};
      }
    }
  }

  TermId target(TermId term, char32_t c) {
    for (const TermRange& range : derivatives_.raw(term)) {
      if (range.first <= c && c <= range.last) return range.target;
    }
    return kNothing;
  }

  std::mt19937 random_{47};
  TermStore store_;
  Derivatives derivatives_{store_};
};

TEST_F(TermRunsTest, ALanguageUnderABoundOfLengthLivesWhereOneOfItsLengthsFits) {
  int num_known = 0;
  int num_alive = 0;
  for (int round = 0; round < 4000; ++round) {
    store_ = TermStore(200'000);
    const Sample one = sample(1 + below(4));
    const std::uint32_t min = below(20);
    const std::uint32_t max = min + below(20);
    bool is_alive = false;
    for (std::uint32_t i = min; i <= max; ++i) is_alive = is_alive || one.lengths.test(i);
    const TermId bounded = store_.all_of({one.term, any(min, max)});
    const bool is_known = bounded == kNothing || store_.has_text(bounded);
    ASSERT_EQ(derivatives_.is_alive(bounded), is_alive) << "round " << round << ", " << min << " to " << max;
    ASSERT_FALSE(store_.is_exhausted());
    num_known += is_known ? 1 : 0;
    num_alive += is_alive ? 1 : 0;
  }
  EXPECT_GT(num_known, 1500);  // without a search
  EXPECT_GT(num_alive, 1000);
  EXPECT_LT(num_alive, 3500);
}

TEST_F(TermRunsTest, CountedRepeatsThatMayBeginAnywhereNeedNoSearchUnderABoundOfLength) {
  const TermId vowel = store_.char_class(CodePointSet::of('a', 'e'));
  const TermId language = store_.concat(std::vector<TermId>{store_.any_text(), vowel, any(20, 20), vowel});
  const std::size_t num_before = store_.num_terms();
  for (std::uint32_t max = 22; max < 300; ++max) EXPECT_TRUE(derivatives_.is_alive(store_.all_of({language, any(0, max)})));
  EXPECT_FALSE(derivatives_.is_alive(store_.all_of({language, any(0, 21)})));
  EXPECT_FALSE(derivatives_.is_alive(store_.all_of({language, any(3, 9)})));
  EXPECT_LT(store_.num_terms(), num_before + 2 * 300);  // the lengths and the intersections themselves
}

// Two counted repeats that may both begin anywhere: the pairs of what is left of each are many, what is left of one is not.
TEST_F(TermRunsTest, TwoLanguagesUnderABoundAreSearchedWithoutTermsOfTheirPairs) {
  const auto counted = [&](const char* first, std::uint32_t count, const char* last) {
    const std::vector<TermId> parts = {store_.any_text(), store_.literal(first), any(count, count), store_.literal(last), store_.any_text()};
    return store_.concat(parts);
  };
  const TermId both = store_.all_of({counted("x", 12, "y"), counted("z", 9, "a")});
  for (std::uint32_t max = 1; max < 60; ++max) {
    // "x", ten others, "z", "xxy", six others, "a": the second one may begin inside the first.
    EXPECT_EQ(derivatives_.is_alive(store_.all_of({both, any(0, max)})), max >= 14) << max;
  }
  EXPECT_FALSE(store_.is_exhausted());
  EXPECT_LT(store_.num_terms(), 8000U);
}

TEST_F(TermRunsTest, WhatTwoLanguagesHaveInCommonIsWhatAWalkFinds) {
  for (int round = 0; round < 400; ++round) {
    store_ = TermStore(200'000);
    const auto letters = [&](char32_t last) { return store_.char_class(CodePointSet::of('a', last)); };
    const auto language = [&] {
      std::vector<TermId> parts;
      for (std::uint32_t i = 0; i < 3; ++i) {
        const std::uint32_t min = below(3);
        parts.push_back(store_.repeat(letters('a' + below(3)), min, below(3) == 0 ? kUnbounded : min + below(3)));
      }
      const TermId made = store_.concat(parts);
      return below(3) == 0 ? store_.complement(made) : made;
    };
    const std::uint32_t min = below(5);
    const std::vector<TermId> languages = {language(), language(), any(min, min + below(4))};
    // All texts of the letters that the bound leaves.
    bool is_alive = false;
    const auto walk = [&](const auto& self, const std::vector<TermId>& at, int depth) -> void {
      if (std::ranges::all_of(at, [&](TermId term) { return store_.is_nullable(term); })) is_alive = true;
      if (is_alive || depth == 8) return;
      for (const char32_t c : {U'a', U'b', U'c', U'd'}) {
        std::vector<TermId> next;
        for (const TermId term : at) next.push_back(target(term, c));
        if (std::ranges::find(next, kNothing) == next.end()) self(self, next, depth + 1);
      }
    };
    walk(walk, languages, 0);
    ASSERT_EQ(derivatives_.is_alive(store_.all_of(languages)), is_alive) << round;
    ASSERT_FALSE(store_.is_exhausted());
  }
}

// Each start of a text is walked near the bound, where only some of the counted repeats still fit.
TEST_F(TermRunsTest, AWalkNearTheBoundMakesFewTerms) {
  const TermId x = store_.literal("x");
  const TermId language = store_.concat(std::vector<TermId>{store_.any_text(), x, any(12, 12), store_.literal("y")});
  TermId term = store_.all_of({language, any(0, 40)});
  const std::string_view text = "xxyxaxbbxyxxzxxxyxaxbbxyx";  // 14 more have to follow each x
  for (const char c : text) {
    term = derivatives_.next(term, static_cast<char32_t>(c));
    ASSERT_NE(term, kNothing);
  }
  EXPECT_LT(store_.num_terms(), 1000U);
}

}  // namespace
}  // namespace kvasir::grammar::term_runs_test
