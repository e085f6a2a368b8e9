// One answer under a guide.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir {

// Thread safety: none; one per choice, on the engine thread.
class GuidedChoice {
 public:
  // stop_tokens end the answer; they may come where the guide may end, and nowhere else.
  GuidedChoice(std::shared_ptr<const grammar::CompiledGrammar> guide, std::span<const TokenId> stop_tokens)
      : guide_(std::move(guide)),
        matcher_(guide_),
        mask_(guide_->vocabulary().num_tokens()),
        stop_tokens_(stop_tokens.begin(), stop_tokens.end()) {}

  // A bit for each token that may come next. The view lives until the next call of push().
  std::span<const std::uint64_t> allowed() {
    if (!is_filled_) fill();
    return mask_.words();
  }
  // The token that came, of those allowed and no stop token.
  void push(TokenId token) {
    is_lost_ = !matcher_.accept(token) || is_lost_;
    is_filled_ = false;
  }

  // The guide's text is complete, and nothing may follow.
  bool must_end() const { return matcher_.must_end(); }
  // The answer cannot go on under the guide.
  std::optional<Error> error() const {
    if (!is_lost_ && !guide_->is_exhausted()) return std::nullopt;
    return Error{ErrorKind::kUnmet, "guide: the answer makes it too ambiguous, or gives it too many states", "guide"};
  }

 private:
  void fill() {
    matcher_.fill(mask_);
    const bool may_end = matcher_.is_accepting();
    for (const TokenId token : stop_tokens_) {
      if (token >= mask_.num_tokens()) continue;
      may_end ? mask_.set(token) : mask_.reset(token);
    }
    is_filled_ = true;
  }

  std::shared_ptr<const grammar::CompiledGrammar> guide_;
  grammar::GrammarMatcher matcher_;
  grammar::TokenMask mask_;
  std::vector<TokenId> stop_tokens_;
  bool is_filled_ = false;
  bool is_lost_ = false;
};

}  // namespace kvasir
