// The token that a model most often generated behind the last few, counted beforehand in texts of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::spec {

// A hash table without its keys: a slot holds half of the key's hash, so one lookup in some millions finds the entry of
// another context. That costs a wrong guess.
//
// Immutable; safe to read from any thread.
class NgramTable {
 public:
  static constexpr std::int32_t kMaxOrder = 8;      // tokens of a context
  static constexpr TokenId kMaxTokens = 1 << 24;    // of a vocabulary
  static constexpr std::size_t kWordsPerSlot = 2;

  struct Guess {
    TokenId token = kNoToken;
    double chance = 0.0;  // that it is right
  };
  struct Entry {
    std::uint64_t context = 0;  // hash_of() it
    Guess guess;
  };

  // order: tokens of the longest context, 1 to kMaxOrder. Later entries of a context replace earlier ones.
  static NgramTable of_entries(std::int32_t order, std::span<const Entry> entries);
  // The words of another table. kBadFile: the order, their number, or a token that is not below vocab_size.
  static Result<NgramTable> of_words(std::int32_t order, std::vector<std::uint32_t> words, std::int32_t vocab_size);

  static std::uint64_t hash_of(std::span<const TokenId> context);

  // The likeliest guess of all contexts that end the text; kNoToken where there is none.
  Guess next(std::span<const TokenId> text) const;

  std::int32_t order() const { return order_; }
  std::span<const std::uint32_t> words() const { return words_; }
  std::size_t num_slots() const { return words_.size() / kWordsPerSlot; }

 private:
  NgramTable(std::int32_t order, std::vector<std::uint32_t> words) : order_(order), words_(std::move(words)) {}
  std::size_t first_slot_of(std::uint64_t hash) const;
  Guess find(std::uint64_t hash) const;

  std::int32_t order_ = 1;
  // Each slot's half hash, then its token in 24 bits and its chance in 255ths in 8. A slot without a chance is empty.
  std::vector<std::uint32_t> words_;
};

}  // namespace kvasir::spec
