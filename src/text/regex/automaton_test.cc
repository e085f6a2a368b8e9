#include "text/regex/automaton.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/pretokenizer.h"

namespace kvasir::text::automaton_test {
namespace {

using Words = std::vector<std::string>;

Words matches(std::string_view pattern, std::string_view text) {
  const auto automaton = regex::Automaton::compile(pattern);
  if (!automaton) return {automaton.error().message};
  Words found;
  automaton->for_each_match(
      text, [&](std::size_t begin, std::size_t end) { found.emplace_back(text.substr(begin, end - begin)); });
  return found;
}

std::string error_of(std::string_view pattern) {
  const auto automaton = regex::Automaton::compile(pattern);
  return automaton ? "no error" : automaton.error().message;
}

TEST(Automaton, TakesAlternativesInTheirOrder) {
  EXPECT_EQ(matches("a|ab", "ab"), (Words{"a"}));
  EXPECT_EQ(matches("ab|a", "aab"), (Words{"a", "ab"}));
  EXPECT_EQ(matches("(?:a|ab)c|b", "abc"), (Words{"abc"}));
  EXPECT_EQ(matches("(?:a|ab)(?:c|bcd)", "abcd"), (Words{"abcd"}));
  EXPECT_EQ(matches("x|", "ax"), (Words{"x"}));
}

TEST(Automaton, GreedyAndLazyMarksDiffer) {
  EXPECT_EQ(matches("a+", "aaa"), (Words{"aaa"}));
  EXPECT_EQ(matches("a+?", "aaa"), (Words{"a", "a", "a"}));
  EXPECT_EQ(matches("a*?b", "aab"), (Words{"aab"}));
  EXPECT_EQ(matches("a{1,2}", "aaa"), (Words{"aa", "a"}));
  EXPECT_EQ(matches("a{1,2}?", "aa"), (Words{"a", "a"}));
  EXPECT_EQ(matches("a{2}", "aaa"), (Words{"aa"}));
  EXPECT_EQ(matches("a{,2}b", "aaab"), (Words{"aab"}));
  EXPECT_EQ(matches("a{2,}", "a aaaa"), (Words{"aaaa"}));
  EXPECT_EQ(matches("a{x}", "a{x}"), (Words{"a{x}"}));
  EXPECT_EQ(matches("a{1,2}+", "aaaaa"), (Words{"aaaaa"}));  // Oniguruma's reading
}

TEST(Automaton, PossessiveClassesGiveNothingBack) {
  EXPECT_EQ(matches("a++", "aaa"), (Words{"aaa"}));
  EXPECT_EQ(matches("[ab]++b", "aab"), Words{});
  EXPECT_EQ(matches("a?+ab", "ab aab"), (Words{"aab"}));
  EXPECT_EQ(matches("[^a]?+b+", "b bb"), (Words{" bb"}));
  EXPECT_NE(error_of("(?:ab)++").find("possessive"), std::string::npos);
}

TEST(Automaton, LooksOneCharacterAhead) {
  EXPECT_EQ(matches(R"(\s+(?!\S)|\s+)", "a   b "), (Words{"  ", " ", " "}));
  EXPECT_EQ(matches("a(?=b)", "ab a"), (Words{"a"}));
  EXPECT_EQ(matches("a(?![bc])", "ab ac ad"), (Words{"a"}));
  EXPECT_EQ(matches("a(?=b|c)", "ab ac ad"), (Words{"a", "a"}));
  EXPECT_EQ(matches("a$", "a\na"), (Words{"a", "a"}));
  EXPECT_EQ(matches(R"(a\z)", "a\na"), (Words{"a"}));
}

TEST(Automaton, KnowsClasses) {
  EXPECT_EQ(matches(R"([\p{Lu}\p{Lt}]+)", "AéÉǅ"), (Words{"A", "Éǅ"}));
  EXPECT_EQ(matches(R"(\p{^L}+)", "a1 b"), (Words{"1 "}));
  EXPECT_EQ(matches(R"(\P{L}+)", "a1 b"), (Words{"1 "}));
  EXPECT_EQ(matches(R"([\p{Han}&&[^中]]+)", "中文字"), (Words{"文字"}));
  EXPECT_EQ(matches(R"([a-z&&[^b]]+)", "abc"), (Words{"a", "c"}));
  EXPECT_EQ(matches(R"([^\s\p{L}]+)", "a1 !b"), (Words{"1", "!"}));
  EXPECT_EQ(matches(R"( ?[^(\s|[.,!?…。，、।۔،])]+)", "a (b.c| d"), (Words{"a", "b", "c", " d"}));
  EXPECT_EQ(matches(R"([]a]+)", "a]b"), (Words{"a]"}));
  EXPECT_EQ(matches(R"([a\-z]+)", "a-z b"), (Words{"a-z"}));
  EXPECT_EQ(matches(R"([+--]+)", "+,-."), (Words{"+,-"}));
  EXPECT_EQ(matches(R"(\x41\u0042\x{1F600})", "AB😀"), (Words{"AB😀"}));
  EXPECT_EQ(matches(R"(\w+)", "a_b-क्ष١"), (Words{"a_b", "क्ष١"}));
  EXPECT_EQ(matches(".+", "ab\nc"), (Words{"ab", "c"}));
}

TEST(Automaton, IgnoresCaseWhereAsked) {
  EXPECT_EQ(matches("(?i:'s|'LL)", "it'S we'll 'ſ"), (Words{"'S", "'ll", "'ſ"}));
  EXPECT_EQ(matches("(?i)ab|c", "AB C"), (Words{"AB", "C"}));
  EXPECT_EQ(matches("(?:(?i)a)b", "Ab AB"), (Words{"Ab"}));
  EXPECT_EQ(matches("(?i:[à-ç])", "ÀÇÈ"), (Words{"À", "Ç"}));
  EXPECT_EQ(matches("(?i:[^a])", "aAb"), (Words{"b"}));
}

TEST(Automaton, NamesWhatItCannotDoAndWhere) {
  EXPECT_EQ(error_of(R"(a(b)\1)"), R"(pattern 'a(b)\1', character 6: the escape \1 is not supported)");
  EXPECT_NE(error_of("a(?<=b)").find("character 4: look-behind"), std::string::npos);
  EXPECT_NE(error_of("^a").find("'^' is not supported"), std::string::npos);
  EXPECT_NE(error_of("(?>a+)").find("atomic"), std::string::npos);
  EXPECT_NE(error_of("a(?=bc)").find("anything but one character"), std::string::npos);
  EXPECT_NE(error_of(R"(\p{Klingon})").find("'Klingon' is not known"), std::string::npos);
  EXPECT_NE(error_of("[a").find("no end"), std::string::npos);
  EXPECT_NE(error_of("(a").find("no end"), std::string::npos);
  EXPECT_NE(error_of("a)").find("no group"), std::string::npos);
  EXPECT_NE(error_of("*a").find("nothing to repeat"), std::string::npos);
  EXPECT_NE(error_of("[z-a]").find("turned round"), std::string::npos);
  EXPECT_NE(error_of("a{3,2}").find("turned round"), std::string::npos);
  EXPECT_NE(error_of("\xFF").find("not UTF-8"), std::string::npos);
  EXPECT_NE(error_of("(?:a{1000}){1000}").find("20000 places"), std::string::npos);
  EXPECT_NE(error_of(".*a.{40}").find("more than"), std::string::npos);
  EXPECT_NE(error_of(std::string(1000, '(')).find("nested"), std::string::npos);
}

// Time: quadratic would be hours. A state that has failed at a place is not tried there again.
TEST(Automaton, TakesLinearTimeWhereMatchesAreDecidedLate) {
  const std::string text(1 << 20, 'a');
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(matches("a+b|a", text).size(), text.size());
  EXPECT_EQ(matches("a+b", text).size(), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// The scanners written by hand and the automaton are independent: they must agree.
TEST(Automaton, SplitsTheStressTextAsTheScannersDo) {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/cases/tokenizer/stress.txt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(text.size(), 30000u);
  const std::string ends = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  const std::string upper = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const std::pair<std::string, std::string> patterns[] = {
      {"gpt-2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
      {"llama-bpe",
       contractions + R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + ends},
      {"qwen2", contractions + R"(|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*+|)" + ends},
      {"gpt-4o", upper + "*" + lower + "+" + contractions + "?|" + upper + "+" + lower + "*" + contractions +
                     R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + ends},
      {"tekken",
       upper + "*" + lower + "+|" + upper + "+" + lower + R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + ends},
  };
  for (const auto& [name, pattern] : patterns) {
    Words words;
    Pretokenizer::create(name).value().for_each_word(
        text, [&](std::string_view word) { words.emplace_back(word); });
    EXPECT_EQ(matches(pattern, text), words) << name;
  }
}

}  // namespace
}  // namespace kvasir::text::automaton_test
