#include "spec/ngram_training.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace kvasir::spec {
namespace {

constexpr std::size_t kTextsOfOneHeldOut = 8;
constexpr std::int32_t kLeastTimes = 2;

// How often contexts that look alike are followed by their token. By length, tokens seen behind, and how many were the same.
class Chances {
 public:
  void observe(const NgramCounts::Context& context, bool is_right) {
    Counts& counts = counts_.at(place_of(context));
    counts.num_right += is_right ? 1.0 : 0.0;
    counts.num_all += 1.0;
  }
  double of(const NgramCounts::Context& context) const {
    constexpr double kPrior = 0.3, kWeightOfPrior = 2.0;
    const Counts& counts = counts_.at(place_of(context));
    return (counts.num_right + kWeightOfPrior * kPrior) / (counts.num_all + kWeightOfPrior);
  }

 private:
  struct Counts {
    double num_right = 0.0, num_all = 0.0;
  };
  static constexpr std::uint32_t kMostSeen = 64;
  static constexpr std::size_t kNumSeen = std::bit_width(kMostSeen) + 1, kNumShares = 6;

  static std::size_t place_of(const NgramCounts::Context& context) {
    const auto seen = static_cast<std::size_t>(std::bit_width(std::min(static_cast<std::uint32_t>(context.num_all), kMostSeen)));
    const std::size_t share = static_cast<std::size_t>(context.num_times) * (kNumShares - 1) /
                              static_cast<std::size_t>(context.num_all);  // the last one: always
    return (static_cast<std::size_t>(context.order) * kNumSeen + seen) * kNumShares + share;
  }

  std::array<Counts, (NgramTable::kMaxOrder + 1) * kNumSeen * kNumShares> counts_{};
};

void observe_text(const GeneratedText& text, const NgramCounts& counts, std::int32_t order, Chances& chances) {
  const std::span tokens(text.tokens);
  for (std::size_t i = std::max<std::size_t>(text.num_prompt_tokens, 1); i < tokens.size(); ++i) {
    const std::size_t most = std::min(i, static_cast<std::size_t>(order));
    for (std::size_t length = 1; length <= most; ++length) {
      const NgramCounts::Context* const context = counts.find(NgramTable::hash_of(tokens.subspan(i - length, length)));
      if (context != nullptr) chances.observe(*context, context->token == tokens[i]);
    }
  }
}

Chances find_chances(std::span<const GeneratedText> texts, std::int32_t order) {
  std::vector<GeneratedText> counted;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % kTextsOfOneHeldOut != 0) counted.push_back(texts[i]);
  }
  const NgramCounts counts(counted, order);
  Chances chances;
  for (std::size_t i = 0; i < texts.size(); i += kTextsOfOneHeldOut) observe_text(texts[i], counts, order, chances);
  return chances;
}

// Whether an end of the context is as sure. That has an entry then, or one of its own ends has.
bool is_needless(const NgramCounts::Context& context, double chance, const NgramCounts& counts, const Chances& chances) {
  for (std::uint64_t hash = context.shorter; hash != 0;) {
    const NgramCounts::Context* const shorter = counts.find(hash);
    if (shorter == nullptr) return false;
    if (chances.of(*shorter) >= chance) return true;
    hash = shorter->shorter;
  }
  return false;
}

}  // namespace

NgramTable train_ngram_table(std::span<const GeneratedText> texts, std::int32_t order) {
  const Chances chances = find_chances(texts, order);
  const NgramCounts counts(texts, order);
  std::vector<NgramTable::Entry> entries;
  for (const NgramCounts::Context& context : counts.contexts()) {
    if (context.order > 1 && context.num_times < kLeastTimes) continue;
    const double chance = chances.of(context);
    if (is_needless(context, chance, counts, chances)) continue;
    entries.push_back({.context = context.hash, .guess = {.token = context.token, .chance = chance}});
  }
  return NgramTable::of_entries(order, entries);
}

NgramScore score_ngram_table(const NgramTable& table, std::span<const GeneratedText> texts) {
  std::array<std::int64_t, NgramScore::kDepth> num_right{};
  NgramScore score;
  std::vector<TokenId> ending;
  for (const GeneratedText& text : texts) {
    for (std::size_t i = std::max<std::size_t>(text.num_prompt_tokens, 1); i < text.tokens.size(); ++i) {
      ++score.num_tokens;
      const std::size_t most = std::min(i, static_cast<std::size_t>(table.order()));
      ending.assign(text.tokens.begin() + static_cast<std::ptrdiff_t>(i - most),
                    text.tokens.begin() + static_cast<std::ptrdiff_t>(i));
      for (std::size_t depth = 0; depth < NgramScore::kDepth && i + depth < text.tokens.size(); ++depth) {
        const TokenId token = table.next(ending).token;
        if (token != text.tokens[i + depth]) break;
        ++num_right.at(depth);
        ending.push_back(token);
      }
    }
  }
  for (const std::int64_t count : num_right) {
    score.acceptance.push_back(score.num_tokens == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(score.num_tokens));
  }
  return score;
}

}  // namespace kvasir::spec
