// Published patterns, and the scanners written by hand for them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "text/hf/component_json.h"
#include "text/number_groups.h"
#include "text/pretokenizer.h"
#include "text/regex/automaton.h"

namespace kvasir::text::hf {
namespace {

using enum PretokenizerFamily;

struct KnownPattern {
  std::string_view pattern;
  PretokenizerFamily family;
};

constexpr KnownPattern kKnownPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kQwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kQwen35},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kTekken},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kGpt4o},
};

// Patterns that look further ahead than one character.
constexpr std::string_view kGroupedDigits = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kGroupBorders = R"((?=(\d{3})+(?!\d)))";

VisitWord as_match(std::string_view text, const VisitMatch& visit) {
  return [text, &visit](std::string_view word) {
    const auto begin = static_cast<std::size_t>(word.data() - text.data());
    visit(begin, begin + word.size());
  };
}

MatchFinder find_words(PretokenizerFamily family) {
  return [words = Pretokenizer(family)](std::string_view text, const VisitMatch& visit) {
    words.for_each_word(text, as_match(text, visit));
  };
}

}  // namespace

std::string_view llama3_pattern() {
  return std::ranges::find(kKnownPatterns, kLlama3, &KnownPattern::family)->pattern;
}

MatchFinder find_tekken_words() { return find_words(kTekken); }

Result<MatchFinder> find_pattern(std::string_view pattern) {
  const auto* const known = std::ranges::find(kKnownPatterns, pattern, &KnownPattern::pattern);
  if (known != std::end(kKnownPatterns)) return find_words(known->family);
  if (pattern == kGroupedDigits) {
    return [](std::string_view text, const VisitMatch& visit) {
      visit_grouped_digits(text, as_match(text, visit), [](std::string_view) {});
    };
  }
  if (pattern == kGroupBorders) {
    return [](std::string_view text, const VisitMatch& visit) {
      visit_grouped_numbers(text, as_match(text, visit));
    };
  }
  KVASIR_TRY(regex::Automaton compiled, regex::Automaton::compile(pattern));
  if (compiled.matches_empty()) {
    return make_error(ErrorKind::kBadFile, fmt::format("the pattern '{}' matches the empty text, where nothing is cut here",
                                                       printable(pattern)));
  }
  const auto automaton = std::make_shared<const regex::Automaton>(std::move(compiled));
  return [automaton](std::string_view text, const VisitMatch& visit) {
    automaton->for_each_match(text, [&](std::size_t begin, std::size_t end) { visit(begin, end); });
  };
}

}  // namespace kvasir::text::hf
