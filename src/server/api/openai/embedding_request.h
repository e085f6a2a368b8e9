// POST /v1/embeddings: what the body says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embedding_prompt.h"
#include "kvasir/request.h"
#include "server/api/field.h"
#include "server/api/openai/plain_prompt.h"

namespace kvasir::server::api {

struct EmbeddingRequest {
  std::string model;
  std::vector<PlainPrompt> inputs;  // not empty once parsed
  PromptWish prompt;                // of what goes before each input that is a text
  Pooling pooling = Pooling::kOfModel;
  bool is_base64 = false;
  std::optional<std::int64_t> dimensions;
  bool add_special_tokens = true;
  bool parse_special = true;  // control tokens in a text mean themselves
  std::int32_t priority = 0;
};

std::span<const Field<EmbeddingRequest>> embedding_fields();

// Errors (400).
ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body, const Limits& limits,
                                                    Warnings& warnings);

}  // namespace kvasir::server::api
