// The tokens that a tokenizer.json file adds to its model, and the vocabulary of both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "text/hf/json_view.h"
#include "text/hf/model_json.h"
#include "text/special_matcher.h"
#include "text/vocab.h"

namespace kvasir::text::hf {

struct AddedToken {
  SpecialToken token = {};     // is_hidden: it is special
  bool is_normalized = false;  // it is matched in normalised text
};

// kBadFile: a field that is missing or wrong.
Result<std::vector<AddedToken>> read_added_tokens(const JsonView& root);

struct JoinedVocab {
  VocabData data = {};              // texts and types; special ids are still missing
  std::vector<bool> is_added = {};  // by id: the model itself does not have it
};

// Ids without a text are unused tokens. An added token that the model has gets the model's id, also in `added`; one
// without a text leaves it.
// kBadFile: two texts for an id, two ids for a text, an id far beyond the number of tokens.
Result<JoinedVocab> join_vocab(const JsonView& root, const ModelJson& model, std::vector<AddedToken>& added);

}  // namespace kvasir::text::hf
