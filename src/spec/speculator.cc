#include "spec/speculator.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::spec {
namespace {

constexpr double kLeastSurvival = 0.02;  // what no row costs less than
// A prompt's last tokens stand before the answer. All chats end with the same few, so the question has to be there too.
constexpr std::size_t kKeptPromptTokens = 24;
constexpr std::size_t kMostKeptTokens = 4096;  // of an answer

}  // namespace

void Speculator::begin(SequenceId id, const Beginning& beginning) {
  Guessed& sequence = sequences_[id];
  for (std::size_t i = 0; i < typical_.size(); ++i) sequence.acceptance.at(i) = Acceptance(&typical_.at(i));
  sequence.text.append(beginning.predicted);
  sequence.text.append(beginning.tokens);
  if (beginning.answer_namespace) {
    sequence.answers = store_.open(*beginning.answer_namespace);
    const std::size_t first = beginning.num_prompt_tokens - std::min(beginning.num_prompt_tokens, kKeptPromptTokens);
    keep(sequence, beginning.tokens.subspan(first));
  }
  gate_.forget_bases();
}

void Speculator::end(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  if (found->second.answers != nullptr) found->second.answers->add(found->second.answer);
  sequences_.erase(found);
  gate_.forget_bases();
}

void Speculator::keep(Guessed& sequence, std::span<const TokenId> tokens) {
  if (sequence.answers == nullptr || sequence.answer.size() >= kMostKeptTokens) return;
  sequence.answer.insert(sequence.answer.end(), tokens.begin(), tokens.end());
}

void Speculator::advance(SequenceId id, std::span<const TokenId> tokens, std::int32_t num_guesses,
                         std::int32_t num_right) {
  Guessed& sequence = sequences_.at(id);
  sequence.text.append(tokens);
  keep(sequence, tokens);
  const auto source = static_cast<std::size_t>(sequence.source);
  for (std::int32_t i = 0; i < std::min(num_guesses, num_right + 1); ++i) {
    sequence.acceptance.at(source).observe(sequence.match_length + i, i < num_right);
    typical_.at(source).observe(sequence.match_length + i, i < num_right);
  }
}

// The match whose next guess is the likelier one.
SuffixIndex::Match Speculator::find_match(Guessed& sequence) const {
  const SuffixIndex::Match own = sequence.text.longest_match();
  sequence.source = Guessed::Source::kText;
  if (sequence.answers == nullptr) return own;
  const SuffixIndex::Match other = sequence.answers->longest_match(sequence.text.tokens());
  if (other.length == 0) return own;
  const auto& [of_text, of_answers] = sequence.acceptance;
  if (own.length > 0 && of_text.estimate(own.length) >= of_answers.estimate(other.length)) return own;
  sequence.source = Guessed::Source::kAnswers;
  return other;
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
    const SuffixIndex::Match match = find_match(sequence);
    sequence.match_length = match.length;
    if (match.length == 0) continue;
    const bool is_own = sequence.source == Guessed::Source::kText;
    if (!is_own) sequence.answers->continue_match(match, kMaxGuesses, sequence.draft);
    const std::int32_t most = is_own ? kMaxGuesses : static_cast<std::int32_t>(sequence.draft.size());
    const Acceptance& acceptance = sequence.acceptance.at(static_cast<std::size_t>(sequence.source));
    double survival = 1.0;
    for (std::int32_t depth = 0; depth < most; ++depth) {
      survival *= acceptance.estimate(match.length + depth);
      if (survival < kLeastSurvival) break;
      survival_[i].push_back(survival);
    }
    if (is_own) sequence.text.continue_match(match, static_cast<std::int32_t>(survival_[i].size()), sequence.draft);
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
