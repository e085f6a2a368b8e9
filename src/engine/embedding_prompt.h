// The text that goes before a text to embed: one that the request has, one of the model's, or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/metadata.h"
#include "kvasir/engine.h"

namespace kvasir {

// What a request says about it.
struct PromptWish {
  std::optional<std::string> prompt = {};       // the text itself
  std::optional<std::string> prompt_name = {};  // of one of ModelInfo::embedding_prompts
  // What the texts are for, as clients write it: "query", "search_document", "retrieval.passage", or a prompt's name.
  std::optional<std::string> input_type = {};
};

// Whether the wish names a prompt in some way.
bool wants_prompt(const PromptWish& wish);

// Empty: none goes before. Without a wish it is the model's default. A purpose without a prompt of its own has none, as
// in sentence-transformers. Errors (kUsage): `prompt` and `prompt_name` together; a name, or a purpose that is neither
// of queries nor of documents, that the model has no prompt for. A model without prompts passes `input_type` over.
Result<std::string> embedding_prompt(const ModelInfo& info, const PromptWish& wish);

// Fills the prompts that io::open_folder has put into the metadata.
void read_embedding_prompts(const io::Metadata& metadata, ModelInfo& info);

}  // namespace kvasir
