// Finds a token by its text: an open-addressing table of ids beside the texts it does not own.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::text {

// Most look-ups while merging miss, so every slot keeps a part of the hash and a miss is decided
// without touching a text.
//
// Thread safety: immutable once filled. Invariant: at most half of the slots are used.
class TokenIndex {
 public:
  // Room for the given number of texts, which the caller keeps alive at the same ids.
  explicit TokenIndex(std::size_t num_texts) : slots_(std::bit_ceil(num_texts * 2 + 2)) {}

  // Enters texts[id]; returns the id that holds this text, which is another one for a duplicate.
  TokenId insert(std::span<const std::string> texts, TokenId id) {
    Slot& slot = slots_[find_slot(texts, texts[static_cast<std::size_t>(id)])];
    if (slot.id == kNoToken) slot = {tag_of(hash(texts[static_cast<std::size_t>(id)])), id};
    return slot.id;
  }

  // kNoToken when no text equals this one.
  TokenId find(std::span<const std::string> texts, std::string_view text) const {
    return slots_[find_slot(texts, text)].id;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    TokenId id = kNoToken;
  };

  static std::size_t hash(std::string_view text) { return std::hash<std::string_view>{}(text); }
  static std::uint32_t tag_of(std::size_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  // The slot of this text, or the free one where it belongs.
  std::size_t find_slot(std::span<const std::string> texts, std::string_view text) const {
    const std::size_t hashed = hash(text);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hashed & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.id == kNoToken) return i;
      if (slot.tag == tag_of(hashed) && texts[static_cast<std::size_t>(slot.id)] == text) return i;
    }
  }

  std::vector<Slot> slots_;
};

}  // namespace kvasir::text
