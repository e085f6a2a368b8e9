// Tokenizers of model folders: tokenizer.json, and what the files beside it add.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir::text {

// The contents of a folder's files, borrowed for the call; empty where the folder lacks one.
struct TokenizerFiles {
  std::string_view tokenizer_json;  // required
  std::string_view tokenizer_config =
      {};                        // tokenizer_config.json: bos_token, eos_token, add_bos_token and the like
  std::string_view config = {};  // config.json: bos_token_id, eos_token_id, in "text_config" too
  std::string_view generation_config = {};  // generation_config.json: eos_token_id
};

// The post-processor decides which tokens go around a text; add_bos_token and add_eos_token count where there is none.
// The tokens that end an answer are those of all the files. Truncation and padding are ignored.
//
// Ids and decoded text equal the library `tokenizers` 0.23, but for: special tokens, which are matched before a
// normalizer sees the text, whatever they say; bytes that are not UTF-8 in a decoded text, which become one U+FFFD for
// each longest run that starts like a character. A Mistral vocabulary with Llama 3's pattern, a known fault of
// published files, gets its own pattern; `notices`, if given, has a line for it.
//
// kBadFile: one line with the place, as a JSON pointer.
Result<std::unique_ptr<Tokenizer>> load_tokenizer_json(const TokenizerFiles& files,
                                                       std::vector<std::string>* notices = nullptr);

}  // namespace kvasir::text
