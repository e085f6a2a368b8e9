#include "server/api/field.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"
#include "base/printable.h"

namespace kvasir::server::api {

bool asks_for_nothing(JsonElement json) {
  if (json.is_null()) return true;
  if (json.is_bool()) return !json.get_bool().value();
  if (json.is_number()) return json.get_double().value() == 0;
  if (json.is_string()) return json.get_string().value().empty();
  if (json.is_array()) return json.get_array().value().size() == 0;
  const JsonObject object = json.get_object().value();
  for (const auto [name, member] : object) {
    if (!asks_for_nothing(member)) return false;
  }
  return true;
}

void warn_left_out(const FieldInput& field) {
  if (!asks_for_nothing(field.json)) field.warn(fmt::format(" is {}", field.meaning));
}

void warn_left_out_unless(const FieldInput& field, std::initializer_list<std::string_view> words) {
  if (field.json.is_string() && std::ranges::find(words, field.json.get_string().value()) != words.end())
    return;
  warn_left_out(field);
}

void warn_ignored(const FieldInput& field, std::string_view why) {
  if (!asks_for_nothing(field.json)) field.warn(fmt::format(" is ignored: {}", why));
}

ApiStatus refuse_unless_empty(const FieldInput& field) {
  if (!field.json.is_object() && asks_for_nothing(field.json)) return {};  // {} asks for the defaults
  return not_supported(field.name, "this field");
}

void warn_unknown_field(std::string_view name, std::span<const std::string_view> known, Warnings& warnings) {
  constexpr std::size_t kMostNamed = 8;
  if (warnings.messages.size() >= kMostNamed) return;
  constexpr std::size_t kLongestNameBytes = 64;
  const std::string_view nearest =
      name.size() <= kLongestNameBytes ? nearest_name(name, known) : std::string_view();
  std::string message = fmt::format("unknown field \"{}\" ignored", printable(name));
  if (!nearest.empty()) message += fmt::format(", did you mean \"{}\"?", nearest);
  warnings.add(std::move(message));
}

}  // namespace kvasir::server::api
