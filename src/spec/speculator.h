// Guesses of what running sequences generate next, from their own texts, from answers that have ended and by a model.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "spec/acceptance.h"
#include "spec/answer_store.h"
#include "spec/draft_gate.h"
#include "spec/kept_answers.h"
#include "spec/suffix_index.h"

namespace kvasir::spec {

// Guesses change no token, for each is checked against what is sampled in its place. They are worth what they bring for
// their time, so all of it is decided by times and by what earlier guesses were worth.
//
// Thread safety: none; on the engine thread.
class Speculator {
 public:
  static constexpr std::int32_t kMaxGuesses = 15;  // of a sequence in a step

  // has_model: a draft model can be asked for guesses. max_guesses: of a sequence in a step, at most kMaxGuesses.
  explicit Speculator(bool has_model = false, std::int32_t max_guesses = kMaxGuesses)
      : has_model_(has_model), max_guesses_(max_guesses) {}

  enum class Source : std::uint8_t { kText, kAnswers, kModel };
  static constexpr std::size_t kNumSources = 3;

  // A sequence that generates.
  struct Beginning {
    std::span<const TokenId> predicted;  // what it may generate
    std::span<const TokenId> tokens;     // its prompt and what it has generated
    std::size_t num_prompt_tokens = 0;
    // Answers of the same namespace are looked up, and this one will be. Nothing: neither.
    std::optional<std::string_view> answer_namespace = {};
  };
  void begin(SequenceId id, const Beginning& beginning);
  bool knows(SequenceId id) const { return sequences_.contains(id); }
  // A step brought these tokens of the sequence, with so many guesses in it, of which the first num_right were right.
  void advance(SequenceId id, std::span<const TokenId> tokens, std::int32_t num_guesses, std::int32_t num_right);
  // Where the guesses in the step come from.
  Source source_of(SequenceId id) const { return sequences_.at(id).source; }
  void end(SequenceId id);
  // The step in which all that happened, if nothing but these streams ran in it.
  // draft_ms: the model took before it.
  void observe_step(std::int32_t num_streams, std::int32_t num_guesses, std::int32_t num_tokens, double milliseconds,
                    double draft_ms = 0.0) {
    gate_.observe(num_streams, num_guesses, num_tokens, milliseconds, draft_ms);
  }
  void observe_passes(std::int32_t num_passes, double milliseconds) { gate_.observe_passes(num_passes, milliseconds); }

  struct Draft {
    SequenceId id{};
    std::size_t stream = 0;  // its place among the streams
    std::span<const TokenId> token_ids;
    std::int32_t num_wanted = 0;  // that the model is to guess; there are no others then
  };
  // Guesses for the next step, in which these sequences run; valid until the next call of anything here.
  std::span<const Draft> propose(std::span<const SequenceId> streams, bool may_ask_model = false);

  const DraftGate& gate() const { return gate_; }

 private:
  struct Guessed {
    SuffixIndex text;
    std::shared_ptr<KeptAnswers> answers;  // null: none are looked up
    std::vector<TokenId> answer;           // with the end of the prompt, to be kept
    std::array<Acceptance, kNumSources> acceptance;
    Source source = Source::kText;
    std::int32_t match_length = 0;  // 1 for the model
    std::vector<TokenId> draft;
  };

  static constexpr double kModelShare = 0.6;  // of a model's guesses that are right, before it is known

  void keep(Guessed& sequence, std::span<const TokenId> tokens);
  SuffixIndex::Match find_match(Guessed& sequence) const;
  bool prefers_model(const Guessed& sequence) const;
  void add_survival(Guessed& sequence, SuffixIndex::Match match, std::vector<double>& survival);
  static const Acceptance& acceptance_of(const Guessed& sequence, Source source) {
    return sequence.acceptance.at(static_cast<std::size_t>(source));
  }

  const bool has_model_;
  std::int32_t max_guesses_;
  Acceptance untried_model_{kModelShare};
  std::uint32_t num_begun_ = 0;
  std::array<Acceptance, kNumSources> typical_ = {Acceptance(), Acceptance(), Acceptance(kModelShare)};  // of all sequences
  AnswerStore store_;
  DraftGate gate_;
  std::map<SequenceId, Guessed> sequences_;
  std::vector<DraftGate::Stream> chances_;  // of propose(), kept for their memory
  std::vector<Draft> drafts_;
};

}  // namespace kvasir::spec
