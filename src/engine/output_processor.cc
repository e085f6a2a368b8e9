#include "engine/output_processor.h"

#include <algorithm>

namespace kvasir {

OutputProcessor::Piece OutputProcessor::push(TokenId token, std::int32_t num_tokens, const GuidedChoice* guide) {
  if (num_tokens <= min_tokens_) return stop_matcher_.push(detokenizer_.push(token), [](std::size_t) { return false; });
  return stop_matcher_.push(detokenizer_.push(token), [guide](std::size_t num_bytes) {
    return guide == nullptr || guide->accepts_prefix(num_bytes);
  });
}

std::size_t OutputProcessor::num_bytes_of(TokenId token) const {
  const bool is_rendered =
      options_.render_special || std::ranges::find(options_.rendered_tokens, token) != options_.rendered_tokens.end();
  return tokenizer_.decode_token(token, is_rendered).size();
}

std::string OutputProcessor::flush() {
  // The detokenizer's rest is an unfinished character shown as U+FFFD: nothing a stop string could end in.
  return stop_matcher_.flush() + detokenizer_.flush();
}

}  // namespace kvasir
