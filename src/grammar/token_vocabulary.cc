#include "grammar/token_vocabulary.h"

#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::grammar {
namespace {

// Whether a text begins behind a token without text.
bool begins_behind_special(const text::Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    if (!tokenizer.vocab().is_special(id)) continue;
    bool at_text_start = false;
    tokenizer.decode_next(id, /*render_special=*/false, at_text_start);
    return at_text_start;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Vocabulary> make_vocabulary(const text::Tokenizer& tokenizer) {
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> first_tokens;
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    bool at_text_start = false;
    tokens.push_back(tokenizer.decode_next(id, /*render_special=*/false, at_text_start));
    at_text_start = true;
    first_tokens.push_back(tokenizer.decode_next(id, /*render_special=*/false, at_text_start));
  }
  return std::make_shared<const Vocabulary>(tokens, first_tokens, begins_behind_special(tokenizer));
}

}  // namespace kvasir::grammar
