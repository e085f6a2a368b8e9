// POST /api/show, /api/pull and DELETE /api/delete: what the bodies say.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/api/field.h"

namespace kvasir::server::api {

struct OllamaModelRequest {
  std::string model;
  bool stream = true;
};

std::span<const Field<OllamaModelRequest>> ollama_show_fields();
std::span<const Field<OllamaModelRequest>> ollama_pull_fields();
std::span<const Field<OllamaModelRequest>> ollama_delete_fields();

// Errors (400).
ApiResult<OllamaModelRequest> parse_ollama_show(std::string_view body, const Limits& limits, Warnings& warnings);
ApiResult<OllamaModelRequest> parse_ollama_pull(std::string_view body, const Limits& limits, Warnings& warnings);
ApiResult<OllamaModelRequest> parse_ollama_delete(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
