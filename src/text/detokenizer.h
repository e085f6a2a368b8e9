// Turns the tokens of an answer into text while they arrive.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kvasir/ids.h"
#include "text/tokenizer.h"

namespace kvasir::text {

struct DetokenizerOptions {
  // Whether control tokens show as their text, such as "<|im_end|>".
  bool render_special = false;
  // Control tokens that do so in any case; borrowed.
  std::span<const TokenId> rendered_tokens = {};
  // Whether the answer begins a text of its own, so that the space SentencePiece puts before a text goes;
  // false when it continues a text, whose next word may well start with a space.
  bool at_text_start = false;
};

// Hands out only whole characters: bytes that may still become one are held back, bytes that cannot
// become U+FFFD, one for each longest run that starts like a character. The pieces, with the one of flush,
// are well-formed UTF-8 and add up to the decoded text.
//
// Thread safety: none; one per answer. Invariant: at most 3 bytes are held back.
class StreamingDetokenizer {
 public:
  // The tokenizer outlives the detokenizer.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, DetokenizerOptions options = {})
      : tokenizer_(tokenizer), options_(options), at_text_start_(options.at_text_start) {}

  // The text this token completes, often empty.
  std::string push(TokenId id);
  // The rest, after the last token; the detokenizer is then as new.
  std::string flush();

 private:
  std::string take_characters();

  const Tokenizer& tokenizer_;
  DetokenizerOptions options_;
  bool at_text_start_;
  std::string held_bytes_;
};

}  // namespace kvasir::text
