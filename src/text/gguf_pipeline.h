// The tokenizers of GGUF files that are pipelines: "bert", "t5" and "gemma4".
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/result.h"
#include "text/tokenizer_parts.h"
#include "text/vocab.h"

namespace kvasir::text {

// Whether the file's words are characters of raw UTF-8, by tokenizer.ggml.model or tokenizer.ggml.pre.
bool is_character_bpe(const VocabData& data);

// `data` is the file's, without what the vocabulary took; `merges` as the file has them. Requires: the vocabulary's
// model is kWordPiece, kUnigram or kCharacterBpe. kBadFile: a broken character map or merge.
Result<TokenizerParts> make_gguf_pipeline(std::unique_ptr<const Vocab> vocab, const VocabData& data,
                                          const std::vector<std::string>& merges);

}  // namespace kvasir::text
