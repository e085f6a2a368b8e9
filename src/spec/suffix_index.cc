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

std::size_t SuffixIndex::bucket_of(TokenId before_last, TokenId last) const {
  const auto first = static_cast<std::uint64_t>(static_cast<std::uint32_t>(before_last));
  const auto second = static_cast<std::uint64_t>(static_cast<std::uint32_t>(last));
  return ((first << 32 | second) * 0x9E3779B97F4A7C15 >> 32) & (latest_.size() - 1);
}

// Requires: those before it are in.
void SuffixIndex::insert(std::size_t position) {
  earlier_.resize(position + 1, -1);
  if (position == 0) return;
  std::int32_t& latest = latest_[bucket_at(position)];
  earlier_[position] = latest;
  latest = static_cast<std::int32_t>(position);
}

void SuffixIndex::rebuild(std::size_t num_buckets) {
  latest_.assign(num_buckets, -1);
  earlier_.clear();
  for (std::size_t i = 0; i < tokens_.size(); ++i) insert(i);
}

SuffixIndex::Match SuffixIndex::longest_match() const {
  return tokens_.size() < 3 ? Match{} : longest_of_chain(earlier_.back(), tokens_);
}

SuffixIndex::Match SuffixIndex::longest_match_of(std::span<const TokenId> text) const {
  if (text.size() < 2 || tokens_.size() < 3) return {};
  return longest_of_chain(latest_[bucket_of(text[text.size() - 2], text.back())], text);
}

SuffixIndex::Match SuffixIndex::longest_of_chain(std::int32_t candidate, std::span<const TokenId> text) const {
  Match best;
  for (std::int32_t i = 0; i < kMaxCandidates && candidate > 0; ++i) {
    const auto end = static_cast<std::size_t>(candidate);
    std::int32_t length = 0;
    const auto most = static_cast<std::int32_t>(std::min({std::size_t{kMaxMatch}, end + 1, text.size()}));
    while (length < most && tokens_[end - static_cast<std::size_t>(length)] ==
                                text[text.size() - 1 - static_cast<std::size_t>(length)]) {
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
