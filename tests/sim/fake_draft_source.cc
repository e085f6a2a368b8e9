#include "sim/fake_draft_source.h"

#include <array>

namespace kvasir::sim {
namespace {

constexpr std::array<std::int32_t, 4> kPercentRight = {0, 50, 90, 100};

}  // namespace

FakeDraftSource::FakeDraftSource(std::uint64_t seed, std::int32_t vocab_size)
    : random_(seed),
      vocab_size_(vocab_size),
      is_on_(random_.percent(50)),
      percent_right_(random_.pick<std::int32_t>(kPercentRight)),
      max_tokens_(random_.between(1, 40)) {}

std::span<const TokenId> FakeDraftSource::propose(std::span<const TokenId> coming) {
  draft_.clear();
  if (!is_on_ || random_.percent(20)) return draft_;
  const std::int32_t num_tokens = random_.between(1, max_tokens_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_tokens); ++i) {
    const bool is_right = i < coming.size() && random_.percent(percent_right_);
    draft_.push_back(is_right ? coming[i] : random_.between(0, vocab_size_ - 1));
  }
  return draft_;
}

}  // namespace kvasir::sim
