#include "admission/recent_prompts.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "kv/cells/cell.h"

namespace kvasir::admission {

// Visits the hash of each whole block with all before it, until `visit` is false. A block that would leave no
// token to compute is left out.
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

// The end of the prompt first, which is then forgotten before its beginning.
std::int32_t RecentPrompts::add(std::string_view tenant, std::string_view cache_namespace,
                                std::span<const TokenId> prompt) {
  const std::int32_t num_known = find(cache_namespace, prompt);
  added_.clear();
  for_each_hash(cache_namespace, prompt, [&](std::uint64_t hash) {
    added_.push_back(hash);
    return true;
  });
  if (added_.empty()) return num_known;
  auto part = parts_.find(tenant);
  if (part == parts_.end()) part = parts_.try_emplace(std::string(tenant)).first;
  for (const std::uint64_t hash : added_ | std::views::reverse) remember(part, hash);
  while (places_.size() > max_blocks_) forget_one();
  return num_known;
}

void RecentPrompts::remember(Part part, std::uint64_t hash) {
  Hashes& hashes = part->second;
  if (const auto known = places_.find(hash); known != places_.end()) {
    const Part before = std::exchange(known->second.part, part);
    hashes.splice(hashes.end(), before->second, known->second.hash);
    if (before->second.empty()) parts_.erase(before);
  } else {
    places_.emplace(hash, Place{part, hashes.insert(hashes.end(), hash)});
  }
}

void RecentPrompts::forget_one() {
  const auto fullest = std::ranges::max_element(parts_, {},
                                                [](const auto& part) { return part.second.size(); });
  places_.erase(fullest->second.front());
  fullest->second.pop_front();
  if (fullest->second.empty()) parts_.erase(fullest);
}

}  // namespace kvasir::admission
