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
#include "spec/ngram_table.h"
#include "spec/suffix_index.h"
#include "spec/survival.h"

namespace kvasir::spec {

// Guesses change no token, for each is checked against what is sampled in its place. They are worth what they bring for
// their time, so all of it is decided by times and by what earlier guesses were worth.
//
// Thread safety: none; on the engine thread.
class Speculator {
 public:
  static constexpr std::int32_t kMaxGuesses = 15;  // of a sequence in a step

  struct Config {
    std::int32_t max_guesses = kMaxGuesses;  // of a sequence in a step, at most kMaxGuesses
    bool uses_text = true;     // guesses come from the sequences' own texts
    bool uses_answers = true;  // .. from answers that have ended
    bool has_model = false;    // a draft model can be asked for them
    std::shared_ptr<const NgramTable> heads = nullptr;  // what was learned beforehand; null: nothing was
  };
  explicit Speculator(Config config) : config_(std::move(config)) {}

  enum class Source : std::uint8_t { kText, kAnswers, kModel, kHeads, kReplay };
  static constexpr std::size_t kNumSources = 5;

  // A sequence that generates.
  struct Beginning {
    std::span<const TokenId> predicted;  // what it may generate
    std::span<const TokenId> tokens;     // its prompt and what it has generated
    std::size_t num_prompt_tokens = 0;
    // Answers of the same namespace are looked up, and this one will be. Nothing: neither.
    std::optional<std::string_view> answer_namespace = {};
    // The answer's tokens, to be guessed at their places. There are no other guesses then.
    std::span<const TokenId> replayed = {};
  };
  void begin(SequenceId id, const Beginning& beginning);
  bool knows(SequenceId id) const { return sequences_.contains(id); }
  // A step brought these tokens of the sequence, with so many guesses in it, of which the first num_right were right.
  void advance(SequenceId id, std::span<const TokenId> tokens, std::int32_t num_guesses, std::int32_t num_right);
  // Where the sequence's next guess comes from, with so many guesses before it in the step.
  Source source_of(SequenceId id, std::int32_t depth) const;
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
  // How many of the first num_guesses guesses were expected to be right.
  double num_expected(SequenceId id, std::int32_t num_guesses) const;

 private:
  struct Origin {
    Source source = Source::kText;
    Grade grade;
  };
  struct Guessed {
    SuffixIndex text;
    std::shared_ptr<KeptAnswers> answers;  // null: none are looked up
    std::vector<TokenId> answer;           // with the end of the prompt, to be kept
    std::array<Acceptance, kNumSources> acceptance;
    bool asks_model = false;  // for all its guesses
    std::vector<TokenId> draft;
    std::vector<Origin> origins;    // of the draft's tokens
    std::vector<double> survival;   // likewise: how likely each is to be right, with all before it
    std::vector<TokenId> replayed;  // as Beginning has it
    std::size_t num_generated = 0;
  };
  struct Matched {
    Source source = Source::kText;
    SuffixIndex::Match match;
  };

  void keep(Guessed& sequence, std::span<const TokenId> tokens);
  Matched find_match(const Guessed& sequence) const;
  bool extend(Guessed& sequence, Origin origin) const;
  void make_draft(Guessed& sequence);
  void replay(Guessed& sequence) const;
  bool prefers_model(const Guessed& sequence) const;
  void ask_model(Guessed& sequence) const;
  // Before it is known, so many of a model's guesses are right.
  static Origin of_model(std::int32_t depth) {
    constexpr double kShare = 0.6;
    return {Source::kModel, {.bucket = Grade::of_match(1 + depth).bucket, .typical = kShare}};
  }
  // The survival of a guess behind others that survive with `before`.
  double survive(const Guessed& sequence, Origin origin, double before) const {
    return survival_.at(static_cast<std::size_t>(origin.source)).after(before, estimate(sequence, origin));
  }
  static double estimate(const Guessed& sequence, Origin origin) {
    return sequence.acceptance.at(static_cast<std::size_t>(origin.source)).estimate(origin.grade);
  }

  const Config config_;
  Acceptance untried_model_;
  std::uint32_t num_begun_ = 0;
  std::array<Acceptance, kNumSources> typical_;  // of all sequences
  std::array<Survival, kNumSources> survival_;   // likewise
  AnswerStore store_;
  DraftGate gate_;
  std::map<SequenceId, Guessed> sequences_;
  std::vector<DraftGate::Stream> chances_;  // of propose(), kept for their memory
  std::vector<Draft> drafts_;
  double least_survival_ = 0.0;   // of guesses in this step
  std::vector<TokenId> matched_;  // of make_draft(), kept for its memory
  std::vector<TokenId> ending_;
};

}  // namespace kvasir::spec
