// Turns tokens into text: the decoders of tokenizer.json files, token by token.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/hf/match_finder.h"

namespace kvasir::text::hf {

// A token on its way to bytes of the text.
struct DecodedToken {
  std::string text;
  bool at_text_start = false;  // whether it is the first of its text
  bool is_fused = false;       // what follows acts on the whole text, not on each token
};

using Decoder = std::function<void(DecodedToken& token)>;

Decoder byte_level_decoder();
// At the start of a text the mark goes, unless none was put there.
Decoder metaspace_decoder(std::string mark, bool strips_first);
// Pieces inside of words have `prefix`, others get a space before them; `cleanup` takes it away before
// punctuation and contractions.
Decoder wordpiece_decoder(std::string prefix, bool cleanup);
Decoder byte_fallback_decoder();
Decoder fuse_decoder();
// Takes up to `start` and `stop` times the content away from the ends.
Decoder strip_decoder(std::string content, std::size_t start, std::size_t stop);
Decoder replace_decoder(MatchFinder find, std::string content);
// The suffix that ends a word becomes a space.
Decoder bpe_decoder(std::string suffix);
// Tokens with a space between them, where a file has no decoder.
Decoder spaced_decoder();
Decoder sequence(std::vector<Decoder> steps);

}  // namespace kvasir::text::hf
