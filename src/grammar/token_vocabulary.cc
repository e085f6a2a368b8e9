#include "grammar/token_vocabulary.h"

#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::grammar {

std::shared_ptr<const Vocabulary> make_vocabulary(const text::Tokenizer& tokenizer) {
  std::vector<std::string_view> tokens;
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    bool at_text_start = false;
    tokens.push_back(tokenizer.decode_next(id, /*render_special=*/false, at_text_start));
  }
  return std::make_shared<const Vocabulary>(tokens);
}

}  // namespace kvasir::grammar
