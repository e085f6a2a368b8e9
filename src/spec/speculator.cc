#include "spec/speculator.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::spec {
namespace {

constexpr double kLeastSurvival = 0.02;  // what no row costs less than
// A prompt's last tokens stand before the answer. All chats end with the same few, so the question has to be there too.
constexpr std::size_t kKeptPromptTokens = 24;
constexpr std::size_t kMostKeptTokens = 4096;  // of an answer
// Each so many sequences one that gives the model another chance.
constexpr std::uint32_t kTryModelEvery = 8;

}  // namespace

void Speculator::begin(SequenceId id, const Beginning& beginning) {
  Guessed& sequence = sequences_[id];
  for (std::size_t i = 0; i < typical_.size(); ++i) sequence.acceptance.at(i) = Acceptance(&typical_.at(i));
  if (++num_begun_ % kTryModelEvery == 0) {
    sequence.acceptance.at(static_cast<std::size_t>(Source::kModel)) = Acceptance(&untried_model_);
  }
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
  sequence.source = Source::kText;
  if (sequence.answers == nullptr) return own;
  const SuffixIndex::Match other = sequence.answers->longest_match(sequence.text.tokens());
  if (other.length == 0) return own;
  const Acceptance& of_text = acceptance_of(sequence, Source::kText);
  if (own.length > 0 && of_text.estimate(own.length) >= acceptance_of(sequence, Source::kAnswers).estimate(other.length)) {
    return own;
  }
  sequence.source = Source::kAnswers;
  return other;
}

// Its first guess is likelier to be right than that of the source at hand.
bool Speculator::prefers_model(const Guessed& sequence) const {
  if (sequence.match_length == 0) return true;
  return acceptance_of(sequence, Source::kModel).estimate(1) >
         acceptance_of(sequence, sequence.source).estimate(sequence.match_length);
}

// Of the guesses that the source can make; those of a text or an answer become the sequence's.
void Speculator::add_survival(Guessed& sequence, SuffixIndex::Match match, std::vector<double>& survival) {
  if (sequence.source == Source::kAnswers) sequence.answers->continue_match(match, max_guesses_, sequence.draft);
  const std::int32_t most =
      sequence.source == Source::kAnswers ? static_cast<std::int32_t>(sequence.draft.size()) : max_guesses_;
  const Acceptance& acceptance = acceptance_of(sequence, sequence.source);
  double chance = 1.0;
  for (std::int32_t depth = 0; depth < most; ++depth) {
    chance *= acceptance.estimate(sequence.match_length + depth);
    if (chance < kLeastSurvival) break;
    survival.push_back(chance);
  }
  if (sequence.source == Source::kText) {
    sequence.text.continue_match(match, static_cast<std::int32_t>(survival.size()), sequence.draft);
  }
}

std::span<const Speculator::Draft> Speculator::propose(std::span<const SequenceId> streams, bool may_ask_model) {
  drafts_.clear();
  chances_.resize(streams.size());
  if (std::ssize(streams) > RowCosts::kMaxStreams) return drafts_;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    DraftGate::Stream& stream = chances_[i];
    stream.survival.clear();
    stream.needs_passes = false;
    const auto found = sequences_.find(streams[i]);
    if (found == sequences_.end() || gate_.is_asleep()) continue;
    Guessed& sequence = found->second;
    sequence.draft.clear();
    const SuffixIndex::Match match = find_match(sequence);
    sequence.match_length = match.length;
    if (has_model_ && may_ask_model && prefers_model(sequence)) {
      sequence.source = Source::kModel;
      sequence.match_length = 1;
      stream.needs_passes = true;
    }
    if (sequence.match_length > 0) add_survival(sequence, match, stream.survival);
  }
  const std::span<const std::int32_t> chosen = gate_.choose(chances_);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (chosen[i] == 0) continue;
    const Guessed& sequence = sequences_.at(streams[i]);
    if (sequence.source == Source::kModel) {
      drafts_.push_back({.id = streams[i], .stream = i, .token_ids = {}, .num_wanted = chosen[i]});
    } else {
      drafts_.push_back({streams[i], i, std::span(sequence.draft).first(static_cast<std::size_t>(chosen[i]))});
    }
  }
  return drafts_;
}

}  // namespace kvasir::spec
