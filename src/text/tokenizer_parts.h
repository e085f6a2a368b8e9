// The parts of a tokenizer, whichever kind of file describes it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "text/bpe.h"
#include "text/pipeline.h"
#include "text/sequence_frame.h"
#include "text/special_matcher.h"
#include "text/spm.h"
#include "text/vocab.h"

namespace kvasir::text {

struct TokenizerParts {
  // The bytes that a token stands for, elsewhere in a text or as the first of a text.
  using TokenBytes = std::function<std::string(TokenId id, bool at_text_start)>;

  std::unique_ptr<const Vocab> vocab;
  std::variant<BpeModel, SpmModel, Pipeline> model;
  SequenceFrame frame = {};
  bool adds_space_prefix = false;  // SentencePiece's, before each text and behind special tokens
  std::vector<SpecialToken> special_tokens = {};  // matched in raw text
  TokenBytes token_bytes = {};  // for pipelines
};

}  // namespace kvasir::text
