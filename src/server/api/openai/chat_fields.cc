#include "server/api/openai/chat_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "server/api/openai/messages.h"
#include "server/api/thinking.h"
#include "server/api/tool_choice.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr double kMostInteger = std::numeric_limits<std::int64_t>::max();

ApiStatus read_message_list(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(request.messages, read_messages(field, *field.warnings));
  if (continues_last_message(field)) request.continue_final_message = true;
  return {};
}

ApiStatus read_documents(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_object() && asks_for_nothing(field.json)) return {};
  KVASIR_CHECKED(array_of(field));
  request.documents = to_template_value(field.json);
  return {};
}

ApiStatus read_tool_list(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(Tools tools, read_tools(field, kChatTools));
  request.tool_names = std::move(tools.names);
  request.tool_schemas = std::move(tools.schemas);
  request.tool_origins = std::move(tools.origins);
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

ApiStatus read_top_logprobs(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.top_logprobs = static_cast<std::int32_t>(count);
  return {};
}

// Only the names that the template gets from elsewhere are kept from it.
ApiStatus read_template_kwargs(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(const JsonObject kwargs, object_of(field));
  constexpr std::array<std::string_view, 4> kTaken = {"messages", "tools", "documents",
                                                      "add_generation_prompt"};
  for (const auto [key, json] : kwargs) {
    for (const std::string_view taken : kTaken) {
      if (key == taken) {
        return bad_request(fmt::format("{}.{} has a place of its own in the request", field.name, taken),
                           field.name);
      }
    }
    std::erase_if(request.template_kwargs, [key](const auto& given) { return given.first == key; });
    request.template_kwargs.emplace_back(std::string(key), to_template_value(json));
  }
  return {};
}

ApiStatus read_modalities(const FieldInput& field, ChatRequest&) {
  KVASIR_TRY(const JsonArray modalities, array_of(field));
  std::vector<std::string> others;
  std::size_t index = 0;
  for (const JsonElement json : modalities) {
    KVASIR_TRY(const std::string modality, string_of(field.at(index++, json)));
    if (modality != "text") others.push_back(modality);
  }
  if (others.empty()) return {};
  if (std::ssize(others) == std::ssize(modalities)) return not_supported(field.name, "anything but text");
  field.warn(fmt::format(": {} left out, answers are text", fmt::join(others, ", ")));
  return {};
}

// "auto" and "none" demand no call of the functions that are left out.
ApiStatus read_function_call(const FieldInput& field, ChatRequest&) {
  constexpr std::string_view kElsewhere = "a function call (send the functions as tools, and tool_choice)";
  if (asks_for_nothing(field.json)) return {};
  if (!field.json.is_string()) return not_supported(field.name, kElsewhere);
  const std::string_view choice = field.json.get_string().value();
  if (choice == "none" || choice == "auto" || choice.empty()) return {};
  return not_supported(field.name, kElsewhere);
}

// It changes no answer, so one in another form is left out.
ApiStatus read_prediction(const FieldInput& field, ChatRequest& request) {
  JsonElement content;
  JsonArray parts;
  std::string_view text;
  if (field.json["content"].get(content) != simdjson::SUCCESS) return warn_ignored(field, "it has no content"), ApiStatus();
  if (content.get_string().get(text) == simdjson::SUCCESS) request.prediction = text;
  if (content.get_array().get(parts) == simdjson::SUCCESS) {
    for (const JsonElement part : parts) {
      if (part["text"].get_string().get(text) == simdjson::SUCCESS) request.prediction += text;
    }
  }
  return {};
}

ApiStatus read_answer_bound(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(request.max_completion_tokens, answer_bound_of(field));
  request.is_unbounded = !request.max_completion_tokens;
  if (request.is_unbounded) request.sampling.max_tokens.reset();
  return {};
}

ApiStatus read_timings(const FieldInput& field, ChatRequest& request) {
  if (field.json.is_bool()) {
    request.timings_per_token = field.json.get_bool().value();
  } else {
    warn_ignored(field, "it is no boolean");
  }
  return {};
}

// Even {} asks for a search.
ApiStatus read_web_search(const FieldInput& field, ChatRequest&) {
  field.warn(fmt::format(" is {}", field.meaning));
  return {};
}

constexpr auto kUnsupported = &read_unsupported<ChatRequest>;
constexpr auto kLeftOut = &read_ignored<ChatRequest>;

constexpr auto kFields = std::to_array<Field<ChatRequest>>({
    {"messages", "array", {}, "the conversation", read_message_list},
    {"max_completion_tokens",
     "integer",
     {-1, kMostInteger},
     "longest answer; replaces max_tokens",
     read_answer_bound},
    {"logprobs", "boolean", {}, "the log probability of each token", read_boolean<&ChatRequest::logprobs>},
    {"top_logprobs", "integer", {0, kMaxInt32}, "alternatives for each token", read_top_logprobs},
    {"tools",
     "array",
     {},
     "functions and custom tools, shown to the model by the template, also with tool_choice none",
     read_tool_list},
    {"tool_choice",
     "string or object",
     {},
     "\"auto\" (default), \"none\", \"required\", a function by its name, or allowed_tools",
     read_openai_tool_choice},
    {"parallel_tool_calls",
     "boolean",
     {},
     "false: at most one call in an answer, the first",
     read_boolean<&ChatRequest::parallel_tool_calls>},
    {"add_generation_prompt",
     "boolean",
     {},
     "end the prompt where the answer begins",
     read_boolean<&ChatRequest::add_generation_prompt>},
    {"continue_final_message",
     "boolean",
     {},
     "the answer goes on where the last message ends",
     read_boolean<&ChatRequest::continue_final_message>},
    {"chat_template_kwargs", "object", {}, "variables for the template", read_template_kwargs},
    {"modalities", "array of strings", {}, "only text", read_modalities},
    {"function_call",
     "string or object",
     {},
     "no call is forced; superseded by tool_choice",
     read_function_call},

    {"enable_thinking", "boolean", {}, "whether to think, told to the template", read_enable_thinking},
    {"reasoning_effort",
     "string",
     {},
     "how hard to think, told to a template that reads it; \"none\": not at all",
     read_reasoning_effort},
    {"reasoning",
     "object",
     {},
     "effort, enabled, max_tokens: told to the template; exclude: true leaves the reasoning out",
     read_reasoning},
    {"thinking",
     "object",
     {},
     "type enabled or disabled, budget_tokens: told to the template",
     read_thinking},
    {"think", "boolean or string", {}, "as enable_thinking, or as reasoning_effort", read_think},
    {"include_reasoning", "boolean", {}, "false: the reasoning is left out", read_include_reasoning},
    {"reasoning_format",
     "string",
     {},
     "\"auto\", \"parsed\", \"deepseek\": in reasoning_content; \"none\", \"raw\": in the content; \"hidden\": left out",
     read_reasoning_format},
    {"thinking_budget",
     "integer",
     {},
     "tokens, told to a template that reads it; nothing else bounds a thought",
     read_thinking_budget},
    {"thinking_token_budget", "integer", {}, "another name for thinking_budget", read_thinking_budget},
    {"reasoning_budget", "integer", {}, "another name for thinking_budget", read_thinking_budget},

    {"timings_per_token",
     "boolean",
     {},
     "how long the prompt and the answer took, also in each piece of a stream",
     read_timings},
    {"prediction", "object", {}, "what the answer may say: it comes faster where it does", read_prediction},
    {"verbosity", "string", {}, "left out: the model decides how much it says", kLeftOut},
    {"web_search_options", "object", {}, "left out: no request makes the server fetch", read_web_search},
    {"functions", "array", {}, "left out: superseded by tools", kLeftOut},
    {"audio", "object", {}, "left out: answers are text", kLeftOut},
    {"add_special_tokens", "boolean", {}, "left out: the template brings them", kLeftOut},
    {"mm_processor_kwargs", "object", {}, "left out: there are no images", kLeftOut},
    {"parse_tool_calls", "boolean", {}, "accepted; tools say it", read_unused<boolean_of>},
    {"options", "object", {}, "left out: they are fields of their own here", kLeftOut},

    {"chat_template", "string", {}, "refused: not there yet", kUnsupported},
    {"documents", "array of objects", {}, "shown by a template that reads them", read_documents},
    {"echo", "boolean", {}, "left out: the answer has no message before it", kLeftOut},
});

ApiStatus check(ChatRequest& request, Warnings& warnings) {
  KVASIR_CHECKED(check_generation_request(request, warnings));
  if (request.messages.is_undefined())
    return bad_request("messages is missing", "messages", "missing_parameter");
  if (request.top_logprobs > 0 && !request.logprobs) {
    return bad_request("top_logprobs needs logprobs: true", "top_logprobs");
  }
  return {};
}

}  // namespace

std::span<const Field<ChatRequest>> chat_fields() { return kFields; }

ApiResult<ChatRequest> parse_chat_request(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  ChatRequest request;
  KVASIR_CHECKED(read_fields(document.root(), generation_fields(), chat_fields(), limits, request, warnings));
  KVASIR_CHECKED(check(request, warnings));
  KVASIR_CHECKED(keep_allowed_tools(request, warnings));
  if (request.max_completion_tokens) request.sampling.max_tokens = request.max_completion_tokens;
  if (request.logprobs) request.sampling.logprobs = request.top_logprobs;
  return request;
}

}  // namespace kvasir::server::api
