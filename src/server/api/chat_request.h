// A chat's request, in whichever protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"
#include "server/api/generation_request.h"
#include "server/api/tools.h"

namespace kvasir::server::api {

struct ChatRequest : GenerationRequest {
  jinja::Value messages;  // undefined until read
  jinja::Value tools = jinja::Value::none();
  jinja::Value documents = jinja::Value::none();
  std::vector<std::string> tool_names;
  std::vector<ToolOrigin> tool_origins;
  std::string tool_choice = "auto";
  std::optional<std::vector<std::string>> allowed_tools;  // by the choice; none: all
  bool parallel_tool_calls = true;
  bool may_call_tools() const { return !tool_names.empty() && tool_choice == "auto"; }
  std::optional<std::int32_t> max_completion_tokens;
  bool logprobs = false;
  std::int32_t top_logprobs = 0;
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the answer goes on where the last message ends
  std::vector<std::pair<std::string, jinja::Value>> template_kwargs;
};

}  // namespace kvasir::server::api
