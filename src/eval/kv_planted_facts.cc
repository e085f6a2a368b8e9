#include "eval/kv_planted_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <string_view>

namespace kvasir::eval {
namespace {

// Unlike the wording of needles, which measure what was learned.
struct Wording {
  std::string_view fact, question;  // {0}: a person, {1}: a value
  bool is_number = true;
};
constexpr std::array kWordings = {
    Wording{" The parcel of {0} lies in locker {1}.", "\n\nIn which locker lies the parcel of {0}? In locker {1}.\n\n"},
    Wording{" {0} was given the badge with number {1}.", "\n\nWhich badge was {0} given? The badge with number {1}.\n\n"},
    Wording{" By the way, {0} lives in room {1}.", "\n\nTell me, in which room does {0} live? {0} lives in room {1}.\n\n"},
    Wording{" {0}'s telephone extension: {1}.", "\n\nQ: Telephone extension of {0}?\nA: {1}.\n\n"},
    Wording{" The favourite animal of {0} is the {1}.", "\n\nWhich animal does {0} like most? The favourite animal of {0} is the {1}.\n\n", false},
    Wording{" On Sundays {0} plays the {1}.", "\n\nWhat does {0} play on Sundays? On Sundays {0} plays the {1}.\n\n", false}};
constexpr std::array kPersons = {"Harold", "Ingrid", "Matteo", "Yusuf", "Priya", "Wanda", "Otto", "Leila", "Bruno", "Sofia", "Tomas", "Greta"};
constexpr std::array kWords = {"otter", "violin", "heron", "trumpet", "badger", "cello", "lynx", "harp", "walrus", "organ"};

constexpr std::size_t kTokensPerFact = 160;

struct Fact {
  std::vector<TokenId> said, asked;
};

std::vector<Fact> draw_facts(const text::Tokenizer& tokenizer, std::size_t count, std::mt19937_64& random) {
  std::vector<Fact> facts;
  const std::size_t first = random() % kPersons.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Wording& wording = kWordings[random() % kWordings.size()];
    const std::string_view person = kPersons[(first + i) % kPersons.size()];
    const std::string value = wording.is_number ? fmt::format("{}", 100 + random() % 99900) : kWords[random() % kWords.size()];
    const auto encode = [&](std::string_view words) {
      return tokenizer.encode(fmt::format(fmt::runtime(words), person, value), {.add_special = false});
    };
    facts.push_back({.said = encode(wording.fact), .asked = encode(wording.question)});
  }
  return facts;
}

}  // namespace

std::vector<TokenId> plant_facts(const text::Tokenizer& tokenizer, std::vector<TokenId> text, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<Fact> facts = draw_facts(tokenizer, std::min(text.size() / kTokensPerFact, kPersons.size()), random);
  std::size_t place_tokens = 1;
  for (const Fact& fact : facts) place_tokens = std::max({place_tokens, fact.said.size(), fact.asked.size()});
  std::vector<std::size_t> places(text.size() / place_tokens);
  std::iota(places.begin(), places.end(), 0);
  if (!places.empty()) places.erase(places.begin());  // the beginning stays
  std::ranges::shuffle(places, random);
  const auto write = [&](const std::vector<TokenId>& tokens, std::size_t place) {
    const std::size_t gap = random() % (place_tokens - tokens.size() + 1);
    std::ranges::copy(tokens, text.begin() + static_cast<std::ptrdiff_t>(place * place_tokens + gap));
  };
  for (std::size_t i = 0; i < std::min(facts.size(), places.size() / 2); ++i) {
    const auto [earlier, later] = std::minmax(places[2 * i], places[2 * i + 1]);
    write(facts[i].said, earlier);
    write(facts[i].asked, later);
  }
  return text;
}

}  // namespace kvasir::eval
