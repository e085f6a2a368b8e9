#include "kv/blocks/public_prefixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kv/cells/cell.h"

namespace kvasir::kv {

PublicPrefixes::PublicPrefixes(std::vector<std::vector<TokenId>> prefixes) : prefixes_(std::move(prefixes)) {
  for (std::vector<TokenId>& prefix : prefixes_) {
    prefix.resize(prefix.size() / kTokensPerBlock * kTokensPerBlock);
  }
}

PublicPrefixes::Match PublicPrefixes::longest(std::span<const TokenId> prompt) const {
  Match longest;
  for (std::size_t i = 0; i < prefixes_.size(); ++i) {
    const std::vector<TokenId>& prefix = prefixes_[i];
    const auto num_blocks = static_cast<std::int32_t>(prefix.size()) / kTokensPerBlock;
    if (num_blocks <= longest.num_blocks || prompt.size() < prefix.size()) continue;
    if (std::ranges::equal(prefix, prompt.first(prefix.size()))) {
      longest = {.number = static_cast<std::int32_t>(i) + 1, .num_blocks = num_blocks};
    }
  }
  return longest;
}

std::string PublicPrefixes::public_namespace(const Match& match) {
  return fmt::format("public {}", match.number);
}

std::string PublicPrefixes::tenant_namespace(const Match& match, std::string_view cache_namespace) {
  return fmt::format("{}:{}", match.number, cache_namespace);
}

}  // namespace kvasir::kv
