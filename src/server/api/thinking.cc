#include "server/api/thinking.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kvasir::server::api {
namespace {

using jinja::Value;

// chat_template_kwargs says it more plainly, and wins.
void enable_thinking(ChatRequest& request, bool is_enabled) {
  const auto is_said = [](const auto& variable) { return variable.first == "enable_thinking"; };
  if (std::ranges::any_of(request.template_kwargs, is_said)) return;
  request.template_kwargs.emplace_back("enable_thinking", Value::boolean(is_enabled));
}

}  // namespace

void read_effort(const FieldInput& field, std::string_view effort, ChatRequest& request) {
  if (effort.empty()) return;
  if (effort == "none") return enable_thinking(request, false);
  field.warn(" is left out: the model's chat template decides how it thinks");
}

ApiStatus read_reasoning_effort(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_string()) {
    warn_left_out(field);
    return {};
  }
  read_effort(field, field.json.get_string().value(), request);
  return {};
}

ApiStatus read_reasoning(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_object()) {
    warn_left_out(field);
    return {};
  }
  const auto effort = find_member(field.json.get_object().value(), "effort");
  if (effort && effort->is_string() && effort->get_string().value() == "none") {
    enable_thinking(request, false);
    return {};
  }
  warn_left_out(field);
  return {};
}

ApiStatus read_thinking(const FieldInput& field, ChatRequest& request) {
  const bool is_object = field.json.is_object();
  const auto type = is_object ? find_member(field.json.get_object().value(), "type") : std::nullopt;
  const std::string_view word = type && type->is_string() ? type->get_string().value() : std::string_view();
  if (word == "disabled" || word == "enabled") enable_thinking(request, word == "enabled");
  if (word != "disabled") warn_left_out(field);
  return {};
}

ApiStatus read_enable_thinking(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(const bool is_enabled, boolean_of(field));
  enable_thinking(request, is_enabled);
  return {};
}

}  // namespace kvasir::server::api
