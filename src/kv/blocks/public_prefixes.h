// Beginnings of prompts that an operator has marked public: all tenants share their KV.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::kv {

// Only the full blocks of each prefix count. A namespace of a prompt that begins with one is split: the
// prefix lies in a namespace of its own, and what follows in one that only the tenant has.
//
// Thread safety: immutable.
class PublicPrefixes {
 public:
  struct Match {
    std::int32_t number = 0;      // from 1 on; 0: the prompt begins with none of them
    std::int32_t num_blocks = 0;  // of the longest that it begins with
  };

  PublicPrefixes() = default;
  explicit PublicPrefixes(std::vector<std::vector<TokenId>> prefixes);

  Match longest(std::span<const TokenId> prompt) const;

  // Names that no two of these kinds have in common, whatever tenants call theirs.
  static std::string public_namespace(const Match& match);
  static std::string tenant_namespace(const Match& match, std::string_view cache_namespace);

 private:
  std::vector<std::vector<TokenId>> prefixes_;
};

}  // namespace kvasir::kv
