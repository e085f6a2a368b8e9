#include "engine/output_processor.h"

namespace kvasir {

OutputProcessor::Piece OutputProcessor::push(TokenId token, std::int32_t num_tokens) {
  return stop_matcher_.push(detokenizer_.push(token), num_tokens > min_tokens_);
}

std::string OutputProcessor::flush() {
  // The detokenizer's rest is an unfinished character shown as U+FFFD: nothing a stop string could end in.
  return stop_matcher_.flush() + detokenizer_.flush();
}

}  // namespace kvasir
