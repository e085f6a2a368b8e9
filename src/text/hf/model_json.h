// The model of a tokenizer.json file: its vocabulary, and what turns words into ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/result.h"
#include "text/hf/json_view.h"
#include "text/model_vocab.h"
#include "text/word_model.h"

namespace kvasir::text::hf {

// A model with its own vocabulary, before tokens are added to it.
struct ModelJson {
  enum class Kind : std::uint8_t { kBpe, kUnigram, kWordPiece, kWordLevel };
  Kind kind = Kind::kBpe;
  std::vector<std::pair<std::string, std::int64_t>> vocab = {};  // texts and ids
  std::vector<double> scores = {};                               // kUnigram: by place in `vocab`
};

// kBadFile: an unknown type, a wrong field.
Result<ModelJson> read_model(const JsonView& json);

// Requires: `model` was read from `json`, and its texts have their ids in `vocab`. kBadFile: an unknown token that is
// none, a merge of no tokens, a dropout.
Result<std::unique_ptr<const WordModel>> make_word_model(const JsonView& json, const ModelJson& model,
                                                         ModelVocab vocab);

}  // namespace kvasir::text::hf
