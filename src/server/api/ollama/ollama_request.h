// POST /api/chat and /api/generate: what the bodies say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "server/api/chat_request.h"
#include "server/api/field.h"

namespace kvasir::server::api {

// A chat. A prompt of /api/generate is one of a user, unless it is raw or something is filled in.
struct OllamaRequest : ChatRequest {
  OllamaRequest() { stream = true; }

  std::int64_t num_ctx = 0;     // the context that the client wants; 0: it says nothing
  bool has_messages = false;    // else the model is only to be loaded
  std::string prompt, system;   // of /api/generate alone, as all below
  std::string suffix;           // what follows the place that is filled in
  std::vector<TokenId> tokens;  // `context`: of the conversation before
  bool is_raw = false;
  bool fills_in() const { return !suffix.empty(); }
  bool has_prompt() const { return !prompt.empty() || fills_in(); }
};

std::span<const Field<OllamaRequest>> ollama_chat_fields();
std::span<const Field<OllamaRequest>> ollama_generate_fields();

// Errors (400).
ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body, const Limits& limits, Warnings& warnings);
ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body, const Limits& limits, Warnings& warnings);

// The row of `keep_alive`: a number of seconds, or a text such as "5m". Errors (400): it is neither.
ApiStatus check_keep_alive(const FieldInput& field);

}  // namespace kvasir::server::api
