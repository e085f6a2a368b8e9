#include "spec/suffix_index.h"

#include <algorithm>

namespace kvasir::spec {

void SuffixIndex::append(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (tokens_.size() == kMaxTokens) {
      tokens_.erase(tokens_.begin(), tokens_.begin() + kMaxTokens / 2);
      rebuild(latest_.size());
    }
    tokens_.push_back(token);
    if (tokens_.size() > latest_.size()) {
      rebuild(std::max<std::size_t>(64, 2 * latest_.size()));
    } else {
      insert(tokens_.size() - 1);
    }
  }
}

std::size_t SuffixIndex::bucket_of(std::size_t position) const {
  const auto first = static_cast<std::uint64_t>(static_cast<std::uint32_t>(tokens_[position - 1]));
  const auto second = static_cast<std::uint64_t>(static_cast<std::uint32_t>(tokens_[position]));
  return ((first << 32 | second) * 0x9E3779B97F4A7C15 >> 32) & (latest_.size() - 1);
}

// Requires: those before it are in.
void SuffixIndex::insert(std::size_t position) {
  earlier_.resize(position + 1, -1);
  if (position == 0) return;
  std::int32_t& latest = latest_[bucket_of(position)];
  earlier_[position] = latest;
  latest = static_cast<std::int32_t>(position);
}

void SuffixIndex::rebuild(std::size_t num_buckets) {
  latest_.assign(num_buckets, -1);
  earlier_.clear();
  for (std::size_t i = 0; i < tokens_.size(); ++i) insert(i);
}

SuffixIndex::Match SuffixIndex::longest_match() const {
  Match best;
  if (tokens_.size() < 3) return best;
  const std::size_t last = tokens_.size() - 1;
  std::int32_t candidate = earlier_[last];
  for (std::int32_t i = 0; i < kMaxCandidates && candidate > 0; ++i) {
    const auto end = static_cast<std::size_t>(candidate);
    std::int32_t length = 0;
    while (length < kMaxMatch && static_cast<std::size_t>(length) <= end &&
           tokens_[end - static_cast<std::size_t>(length)] ==
               tokens_[last - static_cast<std::size_t>(length)]) {
      ++length;
    }
    if (length >= 2 && length > best.length) best = {.length = length, .next = end + 1};
    if (length == kMaxMatch) break;
    candidate = earlier_[end];
  }
  return best;
}

void SuffixIndex::continue_match(const Match& match, std::int32_t num_tokens,
                                 std::vector<TokenId>& draft) const {
  const std::size_t first_of_draft = draft.size();
  for (std::int32_t i = 0; i < num_tokens; ++i) {
    const std::size_t place = match.next + static_cast<std::size_t>(i);
    draft.push_back(place < tokens_.size() ? tokens_[place] : draft[first_of_draft + place - tokens_.size()]);
  }
}

}  // namespace kvasir::spec
