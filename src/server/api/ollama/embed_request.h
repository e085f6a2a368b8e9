// POST /api/embed and /api/embeddings: what the bodies say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/field.h"
#include "server/api/openai/plain_prompt.h"

namespace kvasir::server::api {

struct OllamaEmbedRequest {
  std::string model;
  std::vector<PlainPrompt> inputs;  // texts; none: it asks whether there are embeddings
  bool truncates = true;  // a text that is too long is cut, else refused
  std::optional<std::int64_t> dimensions;
};

std::span<const Field<OllamaEmbedRequest>> ollama_embed_fields();
std::span<const Field<OllamaEmbedRequest>> ollama_embeddings_fields();

// Errors (400).
ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body, const Limits& limits, Warnings& warnings);
ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
