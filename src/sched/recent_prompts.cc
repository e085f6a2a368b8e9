#include "sched/recent_prompts.h"

#include <algorithm>
#include <array>

#include "kv/cell.h"

namespace kvasir::sched {

// Of each whole block but one that would leave no token to compute, with all before it; until `visit` is
// false.
template <class Visit>
void RecentPrompts::for_each_hash(std::string_view cache_namespace, std::span<const TokenId> prompt,
                                  Visit visit) const {
  if (prompt.empty()) return;
  struct {
    std::uint64_t parent;
    std::array<TokenId, kv::kTokensPerBlock> tokens;
  } message{kv::SipHash(key_).digest(std::as_bytes(std::span(cache_namespace))), {}};
  const std::size_t num_blocks = (prompt.size() - 1) / message.tokens.size();
  for (std::size_t block = 0; block < num_blocks; ++block) {
    std::ranges::copy(prompt.subspan(block * message.tokens.size(), message.tokens.size()),
                      message.tokens.begin());
    message.parent = kv::SipHash(key_).digest(std::as_bytes(std::span(&message, 1)));
    if (!visit(message.parent)) return;
  }
}

std::int32_t RecentPrompts::find(std::string_view cache_namespace, std::span<const TokenId> prompt) const {
  std::int32_t num_known = 0;
  for_each_hash(cache_namespace, prompt, [&](std::uint64_t hash) {
    num_known += times_.contains(hash) ? 1 : 0;
    return times_.contains(hash);
  });
  return num_known * kv::kTokensPerBlock;
}

std::int32_t RecentPrompts::add(std::string_view cache_namespace, std::span<const TokenId> prompt) {
  const std::int32_t num_known = find(cache_namespace, prompt);
  for_each_hash(cache_namespace, prompt, [&](std::uint64_t hash) {
    remember(hash);
    return true;
  });
  return num_known;
}

void RecentPrompts::remember(std::uint64_t hash) {
  ++times_[hash];
  order_.push_back(hash);
  if (order_.size() <= max_blocks_) return;
  const auto oldest = times_.find(order_.front());
  if (--oldest->second == 0) times_.erase(oldest);
  order_.pop_front();
}

}  // namespace kvasir::sched
