#include "server/api/field.h"

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/printable.h"

namespace kvasir::server::api {
namespace {

bool asks_for_nothing(JsonElement json) {
  if (json.is_bool()) return !json.get_bool().value();
  if (json.is_string()) return json.get_string().value().empty();
  if (json.is_array()) return json.get_array().value().size() == 0;
  return false;  // an empty object asks for the field's defaults
}

}  // namespace

ApiStatus refuse_unless_empty(const FieldInput& field) {
  if (asks_for_nothing(field.json)) return {};
  return not_supported(field.name, "this field");
}

void warn_unknown_field(std::string_view name, std::span<const std::string_view> known, Warnings& warnings) {
  if (warnings.messages.size() >= Warnings::kMaxWarnings) return;
  constexpr std::size_t kLongestNameBytes = 64;
  const std::string_view nearest =
      name.size() <= kLongestNameBytes ? nearest_name(name, known) : std::string_view();
  std::string message = fmt::format("unknown field \"{}\" ignored", printable(name));
  if (!nearest.empty()) message += fmt::format(", did you mean \"{}\"?", nearest);
  warnings.messages.push_back(std::move(message));
}

}  // namespace kvasir::server::api
