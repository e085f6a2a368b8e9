// Prompts whose middle is to be filled in, as the model's own tokens mark their parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_context.h"
#include "server/api/warnings.h"

namespace kvasir::server::api {

// A part of another file.
struct FimChunk {
  std::string file_name;
  std::string text;
};

struct FimParts {
  std::string prefix;  // before the place
  std::string suffix;  // behind it
  std::string middle;  // the beginning of what is filled in
  std::vector<FimChunk> chunks;
};

// The prompt of a model that fills in. Control tokens in the parts are text. The answer gets the room that it may
// want, half of the context at most, without a bound a quarter. For that chunks go first, then the far ends of prefix
// and suffix, which a warning says. Errors (400, naming `field`): the model has no tokenizer, or no tokens that mark
// the parts.
//
// Source: Bavarian et al. 2022, "Efficient Training of Language Models to Fill in the Middle"; the chunks as
// Hui et al. 2024, "Qwen2.5-Coder Technical Report", has files of a repository.
ApiResult<std::vector<TokenId>> fim_prompt(const ApiContext& context, const FimParts& parts,
                                           std::optional<std::int32_t> max_tokens, std::string_view field,
                                           Warnings& warnings);

}  // namespace kvasir::server::api
