// One answer under a guide.
#pragma once

#include <cstddef>
#include <cstdint>
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

namespace kvasir {

// Thread safety: none; one per choice, on the engine thread.
class GuidedChoice {
 public:
  // `stop_tokens` end the answer: they may come where the guide may end, and nowhere else. `field`: the guide's, for
  // errors.
  GuidedChoice(CompiledGuide guide, std::string field,
               std::span<const TokenId> stop_tokens);

  // The tokens that may come next. The view lives until the next call of push().
  sampling::AllowedTokens allowed();
  // Writes the tokens that have to come behind this one, which is to come next and is allowed; how many, as far as there
  // is room. None of them may end the answer.
  std::size_t forced_behind(TokenId token, std::span<TokenId> run);
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
  void fill();
  bool is_stop(TokenId token) const;

  CompiledGuide guide_;
  std::string field_;
  std::vector<TokenId> stop_tokens_;
  grammar::GrammarMatcher matcher_;
  std::vector<TokenId> tokens_;
  std::vector<std::size_t> ends_;  // by token, in the answer's bytes
  grammar::TokenMask mask_;
  sampling::AllowedTokens allowed_ = sampling::AllowedTokens::all();  // of mask_, where it is filled
  std::int32_t num_forced_ = 0;
  bool is_filled_ = false;
  bool is_lost_ = false;
};

}  // namespace kvasir
