// POST /completion and /infill: what the bodies say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/field.h"
#include "server/api/fim_prompt.h"
#include "server/api/generation_request.h"
#include "server/api/logit_bias.h"
#include "server/api/openai/plain_prompt.h"

namespace kvasir::server::api {

struct LlamaRequest : GenerationRequest {
  // Texts and token ids, one behind the other.
  using Prompt = std::vector<PlainPrompt>;

  std::vector<Prompt> prompts;  // of /completion
  bool is_list = false;         // there is a list of prompts, so the answer is one too
  FimParts fim;                 // of /infill
  std::int32_t n_probs = 0;
  bool has_post_sampling_probs = false;  // their shape, as n_probs
  bool return_tokens = false;
  bool timings_per_token = false;
  std::vector<std::string> response_fields;                  // paths into the answer; empty: all of it
  std::vector<TextBias> text_biases;
};

std::span<const Field<LlamaRequest>> llama_completion_fields();
std::span<const Field<LlamaRequest>> infill_fields();

// Errors (400).
ApiResult<LlamaRequest> parse_llama_completion(std::string_view body, const Limits& limits, Warnings& warnings);
ApiResult<LlamaRequest> parse_infill(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
