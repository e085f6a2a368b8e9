// One answer under a guide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "kvasir/guide.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "sampling/allowed_tokens.h"
#include "sched/scheduler_output.h"

namespace kvasir {

// A guide that passes its limit of states is renewed. So an answer fails only where its own text and its next token need
// more: which other answers the guide has served makes no difference.
//
// Thread safety: none; one per choice, on the engine thread.
class GuidedChoice {
 public:
  // CompiledGrammar::renewed() of a guide.
  using Renew = std::function<CompiledGuide(const CompiledGuide&)>;

  // `stop_tokens` end the answer: they may come where the guide may end, and nowhere else. `field`: the guide's, for
  // errors.
  GuidedChoice(CompiledGuide guide, std::string field, std::span<const TokenId> stop_tokens,
               Renew renew = [](const CompiledGuide& guide) { return guide->renewed(); });

  // The tokens that may come next.
  sampling::AllowedTokens allowed() { return allowed_at_each({}).front(); }
  // .. and behind each of these guesses, when it and those before it came. The views live until the next call of
  // push() or of this. Requires: all guesses are possible.
  std::span<const sampling::AllowedTokens> allowed_at_each(std::span<const TokenId> guesses);
  // How many of the guesses may come one after the other. None of these ends the answer.
  std::size_t num_possible(std::span<const TokenId> guesses);
  // Whether they may, and the guide has the states for it. Nothing may have to follow them.
  bool has_states_for(std::span<const TokenId> guesses);
  // The last of allowed_at_each(); nothing where has_states_for() fails.
  std::optional<sampling::AllowedTokens> allowed_behind(std::span<const TokenId> guesses);
  // Writes the tokens that have to come behind these, which are to come next and are allowed; how many, as far as there
  // is room. None of them may end the answer.
  std::size_t forced_behind(std::span<const sched::SampledToken> sampled, std::span<TokenId> run);
  // The token that came, of those allowed or forced, and the size of its text in the answer.
  void push(TokenId token, std::size_t num_bytes);
  // The token that came ends the answer.
  void end(TokenId token);

  // The text so far is one of the guide.
  bool is_accepting() const { return matcher_.is_accepting(); }
  // .. and nothing may follow.
  bool must_end() const { return matcher_.must_end(); }
  // Whether the answer's first bytes are a text of the guide by themselves. Requires: as many bytes at least.
  bool accepts_prefix(std::size_t num_bytes) const;
  // Tokens that came where no other was allowed.
  std::int32_t num_forced() const { return num_forced_; }
  // The answer cannot go on under the guide.
  std::optional<Error> error() const;

 private:
  void add_view();
  bool accept(TokenId token, std::span<const TokenId> guesses_before = {});
  bool renew(std::span<const TokenId> guesses_before);
  void forget_views();
  bool is_stop(TokenId token) const;

  CompiledGuide guide_;
  Renew renewed_;
  std::string field_;
  std::vector<TokenId> stop_tokens_;
  grammar::GrammarMatcher matcher_;
  std::vector<TokenId> tokens_;
  std::vector<std::size_t> ends_;  // by token, in the answer's bytes
  // Tokens that may come next, and behind each guess. A token that came as guessed leaves the views behind it valid.
  std::vector<sampling::AllowedTokens> views_;
  std::vector<grammar::TokenMask> masks_;  // of views_, and kept for their memory
  std::vector<TokenId> guesses_;
  std::size_t num_came_ = 0;  // of the guesses
  std::int32_t num_forced_ = 0;
  bool is_lost_ = false;
};

}  // namespace kvasir
