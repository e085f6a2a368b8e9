// A chat's request, in whichever protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"
#include "server/api/generation_request.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "server/api/tools.h"

namespace kvasir::server::api {

// What a request says about thinking. The chat template is told in the words that it reads.
struct ThinkingWish {
  std::optional<bool> is_enabled = {};
  std::string switch_field = {};  // that asked for thinking; empty: none did
  std::string effort = {};        // "none", "low", "high", ..; empty: nothing was said
  std::string effort_field = {};  // that said it
  std::optional<std::int64_t> budget_tokens = {};
  std::string budget_field = {};
  ReasoningForm form = ReasoningForm::kSplit;
};

struct ChatRequest : GenerationRequest {
  jinja::Value messages;  // undefined until read
  jinja::Value tools = jinja::Value::none();
  jinja::Value documents = jinja::Value::none();
  std::vector<std::string> tool_names;
  std::vector<ToolOrigin> tool_origins;
  std::vector<ToolSchema> tool_schemas;  // by name
  std::string tool_choice = "auto";      // "none", "auto" or "required"
  std::string named_tool;                // that has to be called; empty: any
  std::string choice_field = "tool_choice";
  std::optional<std::vector<std::string>> allowed_tools;  // by the choice; none: all
  bool parallel_tool_calls = true;
  bool may_call_tools() const { return !tool_names.empty() && tool_choice != "none"; }
  // A call is what the answer has to be.
  bool must_call_tools() const { return tool_choice == "required"; }
  std::optional<std::int32_t> max_completion_tokens;
  bool logprobs = false;
  std::int32_t top_logprobs = 0;
  bool timings_per_token = false;
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the answer goes on where the last message ends
  std::vector<std::pair<std::string, jinja::Value>> template_kwargs;
  ThinkingWish thinking;
  std::string prediction;  // what the answer may say, which makes it faster
};

}  // namespace kvasir::server::api
