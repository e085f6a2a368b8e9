#include "text/pretokenizer.h"

#include <algorithm>
#include <cstddef>

#include "text/character.h"
#include "text/number_groups.h"
#include "text/pattern_passes.h"
#include "text/word_end.h"

namespace kvasir::text {
namespace {

using Visitor = std::function<void(std::string_view)>;

template <class WordEnd>
void visit_words(std::string_view text, const Visitor& visit, WordEnd word_end) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = word_end(text, begin);
    visit(text.substr(begin, end - begin));
    begin = end;
  }
}

// Visits the stretches of the text that are, in turn, inside and outside of a class of characters.
template <class IsInside, class Inside, class Outside>
void visit_runs(std::string_view text, IsInside is_inside, Inside inside, Outside outside) {
  for (std::size_t begin = 0; begin < text.size();) {
    const bool starts_inside = is_inside(character_at(text, begin));
    const std::size_t end = run_end(text, begin,
                                    [&](const Character& c) { return is_inside(c) == starts_inside; });
    const std::string_view run = text.substr(begin, end - begin);
    starts_inside ? inside(run) : outside(run);
    begin = end;
  }
}

bool is_number(const Character& c) { return c.is_number(); }

// \p{N} on its own, GPT-2 on what lies between.
void visit_smollm_words(std::string_view text, const Visitor& visit) {
  const auto each_alone = [&](std::string_view numbers) {
    visit_words(numbers, visit, [](std::string_view run, std::size_t begin) {
      return begin + character_at(run, begin).size_bytes;
    });
  };
  const auto as_gpt2 = [&](std::string_view run) { visit_words(run, visit, gpt2_word_end); };
  visit_runs(text, is_number, each_alone, as_gpt2);
}

// [0-9][0-9][0-9] on a run of numbers: three ASCII digits in a row, as early as possible, stand alone.
void visit_digit_triples(std::string_view numbers, const Visitor& visit) {
  const auto is_digit = [](const Character& c) { return c.code_point < 128; };
  std::size_t pending = 0;  // what lies before the position and is not visited yet
  for (std::size_t position = 0; position < numbers.size();) {
    const std::size_t end = run_end(numbers, position, is_digit, 3);
    if (end - position < 3) {
      position = std::max(end, position + character_at(numbers, position).size_bytes);
      continue;
    }
    if (position > pending) visit(numbers.substr(pending, position - pending));
    visit(numbers.substr(position, 3));
    position = pending = end;
  }
  if (pending < numbers.size()) visit(numbers.substr(pending));
}

constexpr std::size_t kTriple = 3;

// Groups of three numbers; the first one has what is left over.
void visit_triples_from_end(std::string_view numbers, const Visitor& visit) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < numbers.size(); ++count) at += character_at(numbers, at).size_bytes;
  std::size_t length = count % kTriple == 0 ? kTriple : count % kTriple;
  for (std::size_t begin = 0; begin < numbers.size(); length = kTriple) {
    const std::size_t end = run_end(numbers, begin, is_number, length);
    visit(numbers.substr(begin, end - begin));
    begin = end;
  }
}

// Four passes, each inside the pieces of the one before: [\p{P}\$\+<=>\^~\|]+, then GPT-2, then \p{N}+,
// then [0-9][0-9][0-9].
void visit_default_words(std::string_view text, const Visitor& visit) {
  const auto is_punctuation = [](const Character& c) {
    constexpr std::string_view kMore = "$+<=>^~|";
    return c.is(CharClass::kPunctuation) ||
           (c.code_point < 128 && kMore.contains(static_cast<char>(c.code_point)));
  };
  const auto numbers = [&](std::string_view run) { visit_digit_triples(run, visit); };
  const auto word = [&](std::string_view gpt2_word) { visit_runs(gpt2_word, is_number, numbers, visit); };
  const auto piece = [&](std::string_view run) { visit_words(run, word, gpt2_word_end); };
  visit_runs(text, is_punctuation, piece, piece);
}

constexpr WordRules kLlama3Rules;
constexpr WordRules kQwen2Rules = {.max_digits = 1};
constexpr WordRules kQwen35Rules = {.letters = WordRules::Letters::kWithMarks, .max_digits = 1};
constexpr WordRules kTekkenRules = {.contractions = WordRules::Contractions::kNone,
                                    .letters = WordRules::Letters::kCased,
                                    .after_symbols = WordRules::AfterSymbols::kBreaksAndSlash,
                                    .max_digits = 1};
constexpr WordRules kGpt4oRules = {.contractions = WordRules::Contractions::kAttached,
                                   .letters = WordRules::Letters::kCased,
                                   .after_symbols = WordRules::AfterSymbols::kBreaksAndSlash};
constexpr WordRules kKimiK2Rules = {.contractions = WordRules::Contractions::kAttached,
                                    .letters = WordRules::Letters::kCasedHan};
constexpr WordRules kExaoneMoeRules = {.letters = WordRules::Letters::kPhrases,
                                       .after_symbols = WordRules::AfterSymbols::kOneOfThem,
                                       .max_digits = 1};
constexpr WordRules kJais2Rules = {.spaces = WordRules::Spaces::kHalving};
constexpr WordRules kSeedCoderRules = {.after_symbols = WordRules::AfterSymbols::kNothing, .max_digits = 1};
constexpr WordRules kUfakzekaRules = {.contractions = WordRules::Contractions::kNone, .max_digits = 1};

void visit_by_rules(std::string_view text, const Visitor& visit, const WordRules& rules) {
  visit_words(text, visit, [&](std::string_view t, std::size_t begin) { return word_end(t, begin, rules); });
}

}  // namespace

void Pretokenizer::for_each_word(std::string_view text, const Visitor& visit) const {
  using enum PretokenizerFamily;
  switch (family_) {
    case kGpt2:
      return visit_words(text, visit, gpt2_word_end);
    case kSmolLm:
      return visit_smollm_words(text, visit);
    case kLlama3:
      return visit_by_rules(text, visit, kLlama3Rules);
    case kQwen2:
      return visit_by_rules(text, visit, kQwen2Rules);
    case kQwen35:
      return visit_by_rules(text, visit, kQwen35Rules);
    case kTekken:
      return visit_by_rules(text, visit, kTekkenRules);
    case kGpt4o:
      return visit_by_rules(text, visit, kGpt4oRules);
    case kSeedCoder:
      return visit_by_rules(text, visit, kSeedCoderRules);
    case kUfakzeka:
      return visit_by_rules(text, visit, kUfakzekaRules);
    case kKimiK2:
      return visit_by_rules(text, visit, kKimiK2Rules);
    case kExaoneMoe:
      return visit_by_rules(text, visit, kExaoneMoeRules);
    case kJais2:
      return visit_by_rules(text, visit, kJais2Rules);
    case kTinyAya: {
      const auto as_gpt4o = [&](std::string_view piece) { visit_by_rules(piece, visit, kGpt4oRules); };
      return visit_grouped_digits(text, as_gpt4o, as_gpt4o);
    }
    case kSuperBpe:
      return visit_grouped_numbers(text, visit);
    case kAfmoe: {
      const auto groups = [&](std::string_view numbers) { visit_triples_from_end(numbers, visit); };
      const auto rest = [&](std::string_view run) { visit_passes(run, passes_of(family_), visit); };
      return visit_runs(text, is_number, groups, rest);
    }
    case kChameleon:
    case kSpark:
    case kYoutu:
    case kMiniCpm5:
    case kLaguna:
    case kDeepSeekLlm:
    case kDeepSeekCoder:
    case kDeepSeekV3:
    case kFalcon:
    case kBloom:
    case kViking:
      return visit_passes(text, passes_of(family_), visit);
    case kDefault:
      return visit_default_words(text, visit);
  }
}

}  // namespace kvasir::text
