// The text of one choice while its tokens arrive: detokenised, and cut at the first stop string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/guided_choice.h"
#include "engine/stop_matcher.h"
#include "kvasir/ids.h"
#include "kvasir/sampling_params.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace kvasir {

// A function of the tokens alone: the pieces of push() and flush() add up to the decoded text up to the first
// stop string (with it, if the request includes it), and each is whole characters, so the text may lag behind
// the tokens while a character is incomplete or a stop string might be starting.
//
// Thread safety: none; one per choice.
class OutputProcessor {
 public:
  using Piece = StopMatcher::Piece;

  // Tokenizer and parameters (validated) outlive the processor.
  OutputProcessor(const text::Tokenizer& tokenizer, const SamplingParams& params)
      : tokenizer_(tokenizer),
        options_{.render_special = !params.skip_special_tokens, .rendered_tokens = params.shown_special_tokens},
        detokenizer_(tokenizer, options_),
        stop_matcher_(params.stop, params.include_stop_str_in_output),
        min_tokens_(params.min_tokens) {}

  // The text that token number `num_tokens` of the answer, counting from 1, completes. Stop strings count
  // when they end in the text of a token beyond min_tokens, under a guide (null: none) where the answer is then one of
  // its texts. Once stop_string is set the answer is over.
  Piece push(TokenId token, std::int32_t num_tokens, const GuidedChoice* guide = nullptr);
  // As many bytes as the token's text has, whole characters or not.
  std::size_t num_bytes_of(TokenId token) const;
  // The rest, when the answer ends for another reason: the length, a token, a cancel.
  std::string flush();

 private:
  const text::Tokenizer& tokenizer_;
  const text::DetokenizerOptions options_;
  text::StreamingDetokenizer detokenizer_;
  StopMatcher stop_matcher_;
  const std::int32_t min_tokens_;
};

}  // namespace kvasir
