#include "text/user_text.h"

namespace kvasir::text {

std::vector<std::size_t> plain_positions(const jinja::TracedText& prompt, const Tokenizer& tokenizer) {
  std::vector<std::size_t> plain_at;
  auto span = prompt.foreign().begin();
  for (const std::size_t start : tokenizer.control_token_starts(prompt.bytes())) {
    while (span != prompt.foreign().end() && span->end <= start) ++span;
    if (span == prompt.foreign().end()) break;
    if (start >= span->begin) plain_at.push_back(start);
  }
  return plain_at;
}

}  // namespace kvasir::text
