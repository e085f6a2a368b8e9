#include "server/api/thinking.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/printable.h"
#include "server/api/tool_calls/tool_call_syntax.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;
using Variables = std::vector<std::pair<std::string, Value>>;

// Words of templates: whether to think (Qwen, GLM, Gemma; DeepSeek, Granite, Kimi; Command A), how hard (gpt-oss,
// Mistral; Kimi K3), for how many tokens (Seed-OSS).
constexpr auto kSwitches = std::to_array<std::string_view>({"enable_thinking", "thinking", "reasoning"});
constexpr auto kEfforts = std::to_array<std::string_view>({"reasoning_effort", "thinking_effort"});
constexpr std::string_view kBudget = "thinking_budget";

void add_variable(Variables& variables, std::string_view name, Value value) {
  const auto is_said = [&](const auto& variable) { return variable.first == name; };
  if (std::ranges::any_of(variables, is_said)) return;
  variables.emplace_back(std::string(name), std::move(value));
}

bool reads_effort(std::string_view source) {
  return std::ranges::any_of(kEfforts, [&](std::string_view name) { return source.contains(name); });
}

// A template that has degrees of thinking but no word for none gets the least.
std::string_view told_effort(std::string_view effort, std::string_view source) {
  const bool has_none = source.contains("'none'") || source.contains("\"none\"");
  return effort == "none" && !has_none ? "low" : effort;
}

void read_switch(const FieldInput& field, bool is_enabled, ChatRequest& request) {
  request.thinking.is_enabled = is_enabled;
  request.thinking.switch_field = is_enabled ? field.name : std::string();
}

void read_budget(const FieldInput& field, std::int64_t budget_tokens, ChatRequest& request) {
  request.thinking.budget_tokens = budget_tokens;
  request.thinking.budget_field = field.name;
}

ApiStatus read_budget_member(const FieldInput& field, JsonObject object, std::string_view name,
                             ChatRequest& request) {
  const auto budget = find_member(object, name);
  if (!budget) return {};
  const FieldInput member = field.at(name, *budget);
  if (const auto tokens = integer_of(member)) {
    read_budget(member, *tokens, request);
  } else {
    warn_ignored(member, tokens.error().message);
  }
  return {};
}

bool is_true(JsonObject object, std::string_view name) {
  const auto member = find_member(object, name);
  return member && member->is_bool() && member->get_bool().value();
}

}  // namespace

void read_effort(const FieldInput& field, std::string_view effort, ChatRequest& request) {
  if (effort.empty()) return;
  request.thinking.effort = effort;
  request.thinking.effort_field = field.name;
}

ApiStatus read_reasoning_effort(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_string()) {
    warn_ignored(field, "it is no string");
    return {};
  }
  read_effort(field, field.json.get_string().value(), request);
  return {};
}

ApiStatus read_reasoning(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_object()) {
    warn_ignored(field, "it is no object");
    return {};
  }
  const JsonObject object = field.json.get_object().value();
  const auto effort = find_member(object, "effort");
  if (effort && effort->is_string()) read_effort(field.at("effort", *effort), effort->get_string().value(), request);
  const auto enabled = find_member(object, "enabled");
  if (enabled && enabled->is_bool()) read_switch(field, enabled->get_bool().value(), request);
  if (is_true(object, "exclude")) request.thinking.form = ReasoningForm::kLeftOut;
  return read_budget_member(field, object, "max_tokens", request);
}

ApiStatus read_thinking(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_object()) {
    warn_ignored(field, "it is no object");
    return {};
  }
  const JsonObject object = field.json.get_object().value();
  const auto type = find_member(object, "type");
  const std::string_view word = type && type->is_string() ? type->get_string().value() : std::string_view();
  if (word == "disabled" || word == "enabled") read_switch(field, word == "enabled", request);
  if (word == "adaptive") request.thinking.switch_field = field.name;  // the model decides
  const auto display = find_member(object, "display");
  const bool is_omitted = display && display->is_string() && display->get_string().value() == "omitted";
  if (word == "disabled" || is_omitted) request.thinking.form = ReasoningForm::kLeftOut;
  return read_budget_member(field, object, "budget_tokens", request);
}

ApiStatus read_enable_thinking(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(const bool is_enabled, boolean_of(field));
  read_switch(field, is_enabled, request);
  return {};
}

ApiStatus read_think(const FieldInput& field, ChatRequest& request) {
  if (field.json.is_bool()) {
    read_switch(field, field.json.get_bool().value(), request);
  } else if (field.json.is_string()) {
    read_effort(field, field.json.get_string().value(), request);
  } else {
    warn_ignored(field, "it is neither a boolean nor a string");
  }
  return {};
}

ApiStatus read_thinking_budget(const FieldInput& field, ChatRequest& request) {
  if (const auto tokens = integer_of(field)) {
    read_budget(field, *tokens, request);
  } else {
    warn_ignored(field, tokens.error().message);
  }
  return {};
}

ApiStatus read_include_reasoning(const FieldInput& field, ChatRequest& request) {
  if (field.json.is_bool()) {
    if (!field.json.get_bool().value()) request.thinking.form = ReasoningForm::kLeftOut;
  } else {
    warn_ignored(field, "it is no boolean");
  }
  return {};
}

ApiStatus read_reasoning_format(const FieldInput& field, ChatRequest& request) {
  const std::string_view word = field.json.is_string() ? field.json.get_string().value() : std::string_view();
  if (word == "none" || word == "raw") {
    request.thinking.form = ReasoningForm::kText;
  } else if (word == "hidden") {
    request.thinking.form = ReasoningForm::kLeftOut;
  } else if (word != "auto" && word != "parsed" && word != "deepseek") {
    warn_ignored(field, "known are auto, parsed, deepseek, none, raw, hidden");
  }
  return {};
}

Variables template_variables(const ChatRequest& request, std::string_view source) {
  const ThinkingWish& wish = request.thinking;
  Variables variables = request.template_kwargs;
  std::optional<bool> is_enabled = wish.is_enabled;
  if (!is_enabled && !wish.effort.empty()) is_enabled = wish.effort != "none";
  if (is_enabled) {
    for (const std::string_view name : kSwitches) add_variable(variables, name, Value::boolean(*is_enabled));
  }
  if (!wish.effort.empty()) {
    for (const std::string_view name : kEfforts) {
      add_variable(variables, name, Value::string(std::string(told_effort(wish.effort, source))));
    }
  }
  if (wish.budget_tokens) add_variable(variables, kBudget, Value::integer(*wish.budget_tokens));
  return variables;
}

bool knows_thinking(std::string_view source) {
  return source.contains("enable_thinking") || source.contains("reasoning_content") ||
         std::ranges::any_of(reasoning_marks(),
                             [&](const ReasoningMarks& marks) { return source.contains(marks.open); });
}

void warn_unread_wishes(const ThinkingWish& wish, std::string_view source, Warnings& warnings) {
  const auto warn = [&](std::string_view field, std::string_view why) {
    warnings.add(fmt::format("{} is left out: {}", printable(field), why));
  };
  if (!wish.switch_field.empty() && !knows_thinking(source)) {
    warn(wish.switch_field, "the chat template has no word for thinking, so nothing is split off");
  }
  if (!wish.effort.empty() && wish.effort != "none" && !reads_effort(source)) {
    warn(wish.effort_field, "the model's chat template decides how it thinks");
  }
  if (wish.budget_tokens.value_or(0) > 0 && !source.contains(kBudget)) {
    warn(wish.budget_field, "nothing bounds a thought");
  }
}

}  // namespace kvasir::server::api
