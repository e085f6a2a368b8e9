// Which prompts came lately, to guess what of a new one the prefix cache will have when it starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>

#include "kv/siphash.h"
#include "kvasir/ids.h"

namespace kvasir::sched {

// Remembers hashes of the prompts' first 16, 32, ... tokens, each behind its namespace; the oldest are
// forgotten. A guess: what came may have been evicted since, or not be computed yet.
//
// Thread safety: none.
class RecentPrompts {
 public:
  explicit RecentPrompts(kv::SipKey key, std::size_t max_blocks = 65'536)
      : key_(key), max_blocks_(max_blocks) {}

  // Tokens, whole blocks and less than all, that the prompt has in common with one that came before.
  std::int32_t find(std::string_view cache_namespace, std::span<const TokenId> prompt) const;
  // The same; and now this one came.
  std::int32_t add(std::string_view cache_namespace, std::span<const TokenId> prompt);

 private:
  template <class Visit>
  void for_each_hash(std::string_view cache_namespace, std::span<const TokenId> prompt, Visit visit) const;
  void remember(std::uint64_t hash);

  const kv::SipKey key_;
  const std::size_t max_blocks_;
  std::unordered_map<std::uint64_t, std::uint32_t> times_;  // how often each is in order_
  std::deque<std::uint64_t> order_;                         // the oldest first
};

}  // namespace kvasir::sched
