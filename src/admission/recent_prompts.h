// Which prompts came lately, to guess what of a new one the prefix cache will have when it starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/blocks/siphash.h"
#include "kvasir/ids.h"

namespace kvasir::admission {

// Remembers hashes of the prompts' first 16, 32, ... tokens, each behind its namespace. When there are too
// many, the oldest of the tenant with the most are forgotten. It is a guess: a prompt may have been evicted
// since, or not be computed yet.
//
// Thread safety: none.
class RecentPrompts {
 public:
  explicit RecentPrompts(kv::SipKey key, std::size_t max_blocks = 65'536)
      : key_(key), max_blocks_(max_blocks) {}

  // Tokens, whole blocks and less than all, that the prompt has in common with one that came before.
  std::int32_t find(std::string_view cache_namespace, std::span<const TokenId> prompt) const;
  // The same; and now this one of the tenant came.
  std::int32_t add(std::string_view tenant, std::string_view cache_namespace,
                   std::span<const TokenId> prompt);

 private:
  template <class Visit>
  void for_each_hash(std::string_view cache_namespace, std::span<const TokenId> prompt, Visit visit) const;
  using Hashes = std::list<std::uint64_t>;  // the one that came longest ago first
  using Part = std::map<std::string, Hashes, std::less<>>::iterator;
  struct Place {
    Part part;
    Hashes::iterator hash;
  };

  void remember(Part part, std::uint64_t hash);
  void forget_one();

  const kv::SipKey key_;
  const std::size_t max_blocks_;
  std::map<std::string, Hashes, std::less<>> parts_;  // by tenant
  std::unordered_map<std::uint64_t, Place> places_;
  std::vector<std::uint64_t> added_;  // of add(), kept for its memory
};

}  // namespace kvasir::admission
