#include "sched/recent_prompts.h"

#include <algorithm>
#include <array>
#include <utility>

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
    num_known += places_.contains(hash) ? 1 : 0;
    return places_.contains(hash);
  });
  return num_known * kv::kTokensPerBlock;
}

std::int32_t RecentPrompts::add(std::string_view tenant, std::string_view cache_namespace,
                                std::span<const TokenId> prompt) {
  const std::int32_t num_known = find(cache_namespace, prompt);
  auto part = parts_.find(tenant);
  if (part == parts_.end()) part = parts_.try_emplace(std::string(tenant)).first;
  for_each_hash(cache_namespace, prompt, [&](std::uint64_t hash) {
    remember(part, hash);
    return true;
  });
  if (part->second.empty()) parts_.erase(part);
  return num_known;
}

void RecentPrompts::remember(Part part, std::uint64_t hash) {
  Hashes& hashes = part->second;
  const auto [known, is_new] = places_.try_emplace(hash);
  Place& place = known->second;
  if (is_new) {
    place = {part, hashes.insert(hashes.end(), hash)};
    if (places_.size() > max_blocks_) forget_one(part);
  } else {
    const Part before = std::exchange(place.part, part);
    hashes.splice(hashes.end(), before->second, place.hash);
    if (before->second.empty()) parts_.erase(before);
  }
}

void RecentPrompts::forget_one(Part newest) {
  Part part = newest;
  if (newest->second.size() * parts_.size() <= max_blocks_) {
    part = std::ranges::max_element(parts_, {}, [](const auto& entry) { return entry.second.size(); });
  }
  places_.erase(part->second.front());
  part->second.pop_front();
  if (part->second.empty() && part != newest) parts_.erase(part);
}

}  // namespace kvasir::sched
