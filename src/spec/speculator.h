// Guesses of what running sequences generate next, from their own texts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "spec/acceptance.h"
#include "spec/draft_gate.h"
#include "spec/suffix_index.h"

namespace kvasir::spec {

// Guesses change no token, for each is checked against what is sampled in its place. They are worth what they bring for
// their time, so all of it is decided by times and by what earlier guesses were worth.
//
// Thread safety: none; on the engine thread.
class Speculator {
 public:
  static constexpr std::int32_t kMaxGuesses = 15;  // of a sequence in a step

  // The sequence generates; `tokens` are its prompt and what it has generated, `predicted` what it may generate.
  void begin(SequenceId id, std::span<const TokenId> predicted, std::span<const TokenId> tokens);
  bool knows(SequenceId id) const { return sequences_.contains(id); }
  // A step brought these tokens of the sequence, with so many guesses in it, of which the first num_right were right.
  void advance(SequenceId id, std::span<const TokenId> tokens, std::int32_t num_guesses, std::int32_t num_right);
  void end(SequenceId id);
  // The step in which all that happened, if nothing but these streams ran in it.
  void observe_step(std::int32_t num_streams, std::int32_t num_guesses, std::int32_t num_tokens,
                    double milliseconds) {
    gate_.observe(num_streams, num_guesses, num_tokens, milliseconds);
  }

  struct Draft {
    SequenceId id{};
    std::size_t stream = 0;  // its place among the streams
    std::span<const TokenId> token_ids;
  };
  // Guesses for the next step, in which these sequences run; valid until the next call of anything here.
  std::span<const Draft> propose(std::span<const SequenceId> streams);

  const DraftGate& gate() const { return gate_; }

 private:
  struct Guessed {
    explicit Guessed(const Acceptance* prior) : acceptance(prior) {}

    SuffixIndex text;
    Acceptance acceptance;
    std::int32_t match_length = 0;  // of the guesses in the step
    std::vector<TokenId> draft;
  };

  Acceptance typical_;  // of all sequences
  DraftGate gate_;
  std::map<SequenceId, Guessed> sequences_;
  std::vector<DraftGate::Survival> survival_;  // of propose(), kept for their memory
  std::vector<Draft> drafts_;
};

}  // namespace kvasir::spec
