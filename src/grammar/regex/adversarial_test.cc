// Regular expressions that are made to cost much: each is a guide, or is refused, within 50 ms of processor time.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/ir/grammar_builder.h"
#include "grammar/match/matcher.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/pattern.h"
#include "grammar/testing/time_bar.h"

namespace kvasir::grammar::adversarial_regex_test {
namespace {

double thread_ms() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::map<std::string, std::string> patterns() {
  return {
      {"60,000 groups", std::string(60'000, '(') + "a" + std::string(60'000, ')')},
      {"60 groups", std::string(60, '(') + "a" + std::string(60, ')') + repeated("*", 1)},
      {"a million", "a{1000000}"},
      {"100,000", "a{100000}"},
      {"counts of counts", "(a{1,1000}){1,1000}"},
      {"the same twice", "(a|a)*b"},
      {"two ways", "(x+x+)+y"},
      {"4,000 optional letters", repeated("a?", 4000)},
      {"4,000 optional letters, then as many", repeated("a?", 4000) + repeated("a", 4000)},
      {"a letter far from the end", ".*a.{20}"},
      {"a letter far from the end, counted", "(a|b)*a(a|b){500}"},
      {"many letters far from the end", "(.*a.{12}|.*b.{13}|.*c.{14}|.*d.{15})"},
      {"looks ahead", "^(?=.*a.{15})(?=.*b.{14})(?=.*c.{13})(?!.*d.{12}).*$"},
      {"no two alike", "^(?!.*(aa|bb|cc|dd).{10}).*$"},
      {"alternatives of alternatives", repeated("(a|b|ab|ba)", 1000)},
      {"stars of stars", repeated("(", 50) + "a" + repeated("*)", 50) + "*"},
      {"1,000 words", repeated("(foo|bar|baz)?", 1000)},
      {"letters of every kind", repeated("\\p{L}*\\p{Lu}", 300)},
  };
}

// Until the first mask, or the refusal.
double time_of(std::string_view pattern, PatternFit fit, const std::shared_ptr<const Vocabulary>& vocabulary) {
  TokenMask mask(vocabulary->num_tokens());
  const double begin_ms = thread_ms();
  auto store = std::make_unique<TermStore>();
  const auto term = pattern_language(*store, pattern, fit);
  const bool is_alive = term && Derivatives(*store).is_alive(*term);
  if (is_alive) {
    GrammarBuilder builder(*store);
    const RuleId start = builder.declare("guide");
    builder.define(start, GrammarBuilder::text(*term));
    auto compiled = CompiledGrammar::create(std::move(store), builder.finish(start), vocabulary);
    if (compiled) {
      GrammarMatcher matcher(*compiled);
      matcher.fill(mask);
    }
  }
  return thread_ms() - begin_ms;
}

TEST(AdversarialRegex, TakesNoLong) {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const auto vocabulary = std::make_shared<const Vocabulary>(std::vector<std::string_view>(bytes.begin(), bytes.end()));
  for (const auto& [name, pattern] : patterns()) {
    for (const PatternFit fit : {PatternFit::kWhole, PatternFit::kFound}) {
      double least_ms = 1e9;  // of three
      for (int i = 0; i < 3; ++i) least_ms = std::min(least_ms, time_of(pattern, fit, vocabulary));
      EXPECT_LT(least_ms, time_bar_ms(50.0)) << name;
    }
  }
}

}  // namespace
}  // namespace kvasir::grammar::adversarial_regex_test
