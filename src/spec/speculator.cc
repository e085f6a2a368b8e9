#include "spec/speculator.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::spec {
namespace {

constexpr double kLeastSurvival = 0.02;  // what no row costs less than

}  // namespace

void Speculator::begin(SequenceId id, std::span<const TokenId> predicted, std::span<const TokenId> tokens) {
  SuffixIndex& text = sequences_.try_emplace(id, &typical_).first->second.text;
  text.append(predicted);
  text.append(tokens);
  gate_.forget_bases();
}

void Speculator::end(SequenceId id) {
  if (sequences_.erase(id) > 0) gate_.forget_bases();
}

void Speculator::advance(SequenceId id, std::span<const TokenId> tokens, std::int32_t num_guesses,
                         std::int32_t num_right) {
  Guessed& sequence = sequences_.at(id);
  sequence.text.append(tokens);
  for (std::int32_t i = 0; i < std::min(num_guesses, num_right + 1); ++i) {
    sequence.acceptance.observe(sequence.match_length + i, i < num_right);
    typical_.observe(sequence.match_length + i, i < num_right);
  }
}

std::span<const Speculator::Draft> Speculator::propose(std::span<const SequenceId> streams) {
  drafts_.clear();
  survival_.resize(streams.size());
  if (std::ssize(streams) > RowCosts::kMaxStreams) return drafts_;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    survival_[i].clear();
    const auto found = sequences_.find(streams[i]);
    if (found == sequences_.end() || gate_.is_asleep()) continue;
    Guessed& sequence = found->second;
    sequence.draft.clear();
    const SuffixIndex::Match match = sequence.text.longest_match();
    sequence.match_length = match.length;
    if (match.length == 0) continue;
    double survival = 1.0;
    for (std::int32_t depth = 0; depth < kMaxGuesses; ++depth) {
      survival *= sequence.acceptance.estimate(match.length + depth);
      if (survival < kLeastSurvival) break;
      survival_[i].push_back(survival);
    }
    sequence.text.continue_match(match, static_cast<std::int32_t>(survival_[i].size()), sequence.draft);
  }
  const std::span<const std::int32_t> chosen = gate_.choose(survival_);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (chosen[i] == 0) continue;
    const std::vector<TokenId>& draft = sequences_.at(streams[i]).draft;
    drafts_.push_back({streams[i], i, std::span(draft).first(static_cast<std::size_t>(chosen[i]))});
  }
  return drafts_;
}

}  // namespace kvasir::spec
