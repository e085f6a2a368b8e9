#include "spec/speculator.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

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
  sequence.replayed.assign(beginning.replayed.begin(), beginning.replayed.end());
  sequence.num_generated = beginning.tokens.size() - beginning.num_prompt_tokens;
  sequence.text.append(beginning.predicted);
  sequence.text.append(beginning.tokens);
  if (config_.uses_answers && beginning.answer_namespace) {
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
  sequence.num_generated += tokens.size();
  keep(sequence, tokens);
  for (std::int32_t i = 0; i < num_guesses && std::cmp_less(i, sequence.survival.size()); ++i) {
    const auto place = static_cast<std::size_t>(i);
    survival_.at(static_cast<std::size_t>(sequence.origins[place].source)).observe(sequence.survival[place], i < num_right);
  }
  const std::int32_t num_judged = std::min(num_guesses, num_right + 1);
  for (std::int32_t i = 0; i < num_judged && std::cmp_less(i, sequence.origins.size()); ++i) {
    const auto [source, grade] = sequence.origins[static_cast<std::size_t>(i)];
    sequence.acceptance.at(static_cast<std::size_t>(source)).observe(grade, i < num_right);
    typical_.at(static_cast<std::size_t>(source)).observe(grade, i < num_right);
  }
}

Speculator::Source Speculator::source_of(SequenceId id, std::int32_t depth) const {
  const std::vector<Origin>& origins = sequences_.at(id).origins;
  const auto place = static_cast<std::size_t>(depth);
  return place < origins.size() ? origins[place].source : Source::kText;
}

// The match whose next guess is the likelier one.
Speculator::Matched Speculator::find_match(const Guessed& sequence) const {
  const Matched own = {.source = Source::kText,
                       .match = config_.uses_text ? sequence.text.longest_match() : SuffixIndex::Match{}};
  if (sequence.answers == nullptr) return own;
  const Matched other = {.source = Source::kAnswers, .match = sequence.answers->longest_match(sequence.text.tokens())};
  if (other.match.length == 0) return own;
  const auto first = [&](const Matched& matched) {
    return estimate(sequence, {matched.source, Grade::of_match(matched.match.length)});
  };
  return own.match.length > 0 && first(own) >= first(other) ? own : other;
}

// False: a guess of this origin behind those of the draft is too unlikely to survive.
bool Speculator::extend(Guessed& sequence, Origin origin) const {
  const double before = sequence.survival.empty() ? 1.0 : sequence.survival.back();
  const double chance = survive(sequence, origin, before);
  if (chance < least_survival_) return false;
  sequence.origins.push_back(origin);
  sequence.survival.push_back(chance);
  return true;
}

// Follows the match while nothing that was learned beforehand is surer.
void Speculator::make_draft(Guessed& sequence) {
  const auto [matching, match] = find_match(sequence);
  matched_.clear();
  if (match.length > 0 && matching == Source::kAnswers) {
    sequence.answers->continue_match(match, static_cast<std::size_t>(config_.max_guesses), matched_);
  } else if (match.length > 0) {
    sequence.text.continue_match(match, config_.max_guesses, matched_);
  }
  if (config_.heads != nullptr) {
    const std::span<const TokenId> text = sequence.text.tokens();
    const std::span<const TokenId> last = text.last(std::min(text.size(), static_cast<std::size_t>(config_.heads->order())));
    ending_.assign(last.begin(), last.end());
  }
  bool follows = true;
  for (std::size_t depth = 0; std::cmp_less(depth, config_.max_guesses); ++depth) {
    TokenId token = kNoToken;
    Origin origin;
    double best = 0.0;
    if (follows && depth < matched_.size()) {
      token = matched_[depth];
      origin = {matching, Grade::of_match(match.length + static_cast<std::int32_t>(depth))};
      best = estimate(sequence, origin);
    }
    if (config_.heads != nullptr) {
      const NgramTable::Guess guess = config_.heads->next(ending_);
      const Origin learned = {Source::kHeads, Grade::of_chance(guess.chance)};
      if (guess.token != kNoToken && estimate(sequence, learned) > best) {
        follows = follows && guess.token == token;
        token = guess.token;
        origin = learned;
        best = estimate(sequence, learned);
      }
      ending_.push_back(token);
    }
    if (token == kNoToken) break;
    if (!extend(sequence, origin)) break;
    sequence.draft.push_back(token);
  }
}

void Speculator::replay(Guessed& sequence) const {
  const Origin origin = {Source::kReplay, {.bucket = 0, .typical = 0.8}};
  for (std::size_t i = sequence.num_generated; i < sequence.replayed.size(); ++i) {
    if (std::cmp_equal(sequence.draft.size(), config_.max_guesses)) break;
    if (!extend(sequence, origin)) break;
    sequence.draft.push_back(sequence.replayed[i]);
  }
}

// Its first guess is likelier to be right than the one at hand.
bool Speculator::prefers_model(const Guessed& sequence) const {
  return sequence.survival.empty() || survive(sequence, of_model(0), 1.0) > sequence.survival.front();
}

void Speculator::ask_model(Guessed& sequence) const {
  sequence.asks_model = true;
  sequence.draft.clear();
  sequence.origins.clear();
  sequence.survival.clear();
  for (std::int32_t depth = 0; depth < config_.max_guesses && extend(sequence, of_model(depth)); ++depth) {
  }
}

double Speculator::num_expected(SequenceId id, std::int32_t num_guesses) const {
  const std::vector<double>& survival = sequences_.at(id).survival;
  const auto num_known = std::min(survival.size(), static_cast<std::size_t>(num_guesses));
  return std::accumulate(survival.begin(), survival.begin() + static_cast<std::ptrdiff_t>(num_known), 0.0);
}

std::span<const Speculator::Draft> Speculator::propose(std::span<const SequenceId> streams, bool may_ask_model) {
  drafts_.clear();
  chances_.resize(streams.size());
  if (streams.empty() || std::ssize(streams) > RowCosts::kMaxStreams) return drafts_;
  least_survival_ = std::max(kLeastSurvival, gate_.least_survival(static_cast<std::int32_t>(streams.size())));
  const bool may_pay = least_survival_ < 1.0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    DraftGate::Stream& stream = chances_[i];
    stream.survival.clear();
    stream.needs_passes = false;
    const auto found = sequences_.find(streams[i]);
    if (found == sequences_.end() || gate_.is_asleep() || !may_pay) continue;
    Guessed& sequence = found->second;
    sequence.draft.clear();
    sequence.origins.clear();
    sequence.survival.clear();
    sequence.asks_model = false;
    if (!sequence.replayed.empty()) {
      replay(sequence);
    } else {
      make_draft(sequence);
      if (config_.has_model && may_ask_model && prefers_model(sequence)) ask_model(sequence);
    }
    stream.survival.assign(sequence.survival.begin(), sequence.survival.end());
    stream.needs_passes = sequence.asks_model;
  }
  const std::span<const std::int32_t> chosen = gate_.choose(chances_);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (chosen[i] == 0) continue;
    const Guessed& sequence = sequences_.at(streams[i]);
    if (sequence.asks_model) {
      drafts_.push_back({.id = streams[i], .stream = i, .token_ids = {}, .num_wanted = chosen[i]});
    } else {
      drafts_.push_back({streams[i], i, std::span(sequence.draft).first(static_cast<std::size_t>(chosen[i]))});
    }
  }
  return drafts_;
}

}  // namespace kvasir::spec
