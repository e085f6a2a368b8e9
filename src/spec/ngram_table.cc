#include "spec/ngram_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace kvasir::spec {
namespace {

constexpr double kLoad = 0.75;           // of the slots
constexpr std::size_t kMaxProbes = 256;  // slots that a lookup reads
constexpr double kChanceUnits = 255.0;

std::uint32_t half_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }

std::uint32_t pack(NgramTable::Guess guess) {
  const double units = std::clamp(std::round(guess.chance * kChanceUnits), 1.0, kChanceUnits);
  return static_cast<std::uint32_t>(guess.token) << 8 | static_cast<std::uint32_t>(units);
}

NgramTable::Guess unpack(std::uint32_t word) {
  return {.token = static_cast<TokenId>(word >> 8), .chance = (word & 0xFF) / kChanceUnits};
}

}  // namespace

std::uint64_t NgramTable::hash_of(std::span<const TokenId> context) {
  std::uint64_t hash = 0x9E3779B97F4A7C15 * (context.size() + 1);
  for (const TokenId token : context) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  hash *= 0xD6E8FEB86659FD93;
  return hash ^ hash >> 29;
}

// By the half that the slot does not hold.
std::size_t NgramTable::first_slot_of(std::uint64_t hash) const {
  return static_cast<std::size_t>((hash >> 32) * num_slots() >> 32);
}

NgramTable NgramTable::of_entries(std::int32_t order, std::span<const Entry> entries) {
  CHECK(order >= 1 && order <= kMaxOrder);
  const auto num_slots = static_cast<std::size_t>(static_cast<double>(entries.size()) / kLoad) + 1;
  NgramTable table(order, std::vector<std::uint32_t>(kWordsPerSlot * num_slots, 0));
  for (const Entry& entry : entries) {
    CHECK(entry.guess.token >= 0 && entry.guess.token < kMaxTokens);
    std::size_t slot = table.first_slot_of(entry.context);
    for (std::size_t probe = 0; probe < std::min(kMaxProbes, num_slots); ++probe) {
      std::uint32_t* const words = &table.words_[kWordsPerSlot * slot];
      if (words[1] == 0 || words[0] == half_of(entry.context)) {
        words[0] = half_of(entry.context);
        words[1] = pack(entry.guess);
        break;
      }
      slot = slot + 1 == num_slots ? 0 : slot + 1;
    }
  }
  return table;
}

Result<NgramTable> NgramTable::of_words(std::int32_t order, std::vector<std::uint32_t> words, std::int32_t vocab_size) {
  if (order < 1 || order > kMaxOrder) {
    return make_error(ErrorKind::kBadFile, fmt::format("contexts have 1 to {} tokens, these have {}", kMaxOrder, order));
  }
  if (words.size() < kWordsPerSlot || words.size() % kWordsPerSlot != 0) {
    return make_error(ErrorKind::kBadFile, fmt::format("the table has {} words, which are no pairs", words.size()));
  }
  for (std::size_t i = 1; i < words.size(); i += kWordsPerSlot) {
    const TokenId token = unpack(words[i]).token;
    if (token < vocab_size) continue;
    return make_error(ErrorKind::kBadFile, fmt::format("token {} of slot {} is beyond the vocabulary of {}", token,
                                                       i / kWordsPerSlot, vocab_size));
  }
  return NgramTable(order, std::move(words));
}

NgramTable::Guess NgramTable::find(std::uint64_t hash) const {
  std::size_t slot = first_slot_of(hash);
  for (std::size_t probe = 0; probe < std::min(kMaxProbes, num_slots()); ++probe) {
    const std::uint32_t* const words = &words_[kWordsPerSlot * slot];
    if (words[1] == 0) break;
    if (words[0] == half_of(hash)) return unpack(words[1]);
    slot = slot + 1 == num_slots() ? 0 : slot + 1;
  }
  return {};
}

NgramTable::Guess NgramTable::next(std::span<const TokenId> text) const {
  Guess best;
  const std::size_t most = std::min(static_cast<std::size_t>(order_), text.size());
  for (std::size_t length = most; length >= 1; --length) {
    const Guess guess = find(hash_of(text.last(length)));
    if (guess.chance > best.chance) best = guess;
  }
  return best;
}

}  // namespace kvasir::spec
