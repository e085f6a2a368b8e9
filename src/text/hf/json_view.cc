#include "text/hf/json_view.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace kvasir::text::hf {

std::optional<JsonView> JsonView::find(std::string_view key) const {
  simdjson::dom::element member;
  if (!value_.is_object() || value_.at_key(key).get(member) != simdjson::SUCCESS || member.is_null())
    return std::nullopt;
  return JsonView(member, fmt::format("{}/{}", place_, printable(key)));
}

Result<JsonView> JsonView::at(std::string_view key) const {
  std::optional<JsonView> member = find(key);
  if (!member) return fail(fmt::format("'{}' is missing", printable(key)));
  return *std::move(member);
}

Result<std::string> JsonView::string() const {
  std::string_view text;
  if (value_.get_string().get(text) != simdjson::SUCCESS) return fail("a string is wanted here");
  return std::string(text);
}

Result<bool> JsonView::boolean() const {
  bool value = false;
  if (value_.get_bool().get(value) != simdjson::SUCCESS) return fail("true or false is wanted here");
  return value;
}

Result<std::int64_t> JsonView::integer() const {
  std::int64_t value = 0;
  if (value_.get_int64().get(value) != simdjson::SUCCESS) return fail("a whole number is wanted here");
  return value;
}

Result<std::vector<JsonView>> JsonView::elements() const {
  simdjson::dom::array array;
  if (value_.get_array().get(array) != simdjson::SUCCESS) return fail("an array is wanted here");
  std::vector<JsonView> elements;
  for (const simdjson::dom::element element : array) {
    elements.emplace_back(element, fmt::format("{}/{}", place_, elements.size()));
  }
  return elements;
}

Result<std::string> JsonView::string_at(std::string_view key) const {
  KVASIR_TRY(const JsonView member, at(key));
  return member.string();
}

Result<std::string> JsonView::string_at(std::string_view key, std::string_view otherwise) const {
  const std::optional<JsonView> member = find(key);
  return member ? member->string() : std::string(otherwise);
}

Result<bool> JsonView::boolean_at(std::string_view key, bool otherwise) const {
  const std::optional<JsonView> member = find(key);
  return member ? member->boolean() : otherwise;
}

Result<std::int64_t> JsonView::integer_at(std::string_view key, std::int64_t otherwise) const {
  const std::optional<JsonView> member = find(key);
  return member ? member->integer() : otherwise;
}

std::unexpected<Error> JsonView::fail(std::string_view what) const {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(place_), what));
}

std::unexpected<Error> fail_at(const JsonView& view, const Error& error) { return view.fail(error.message); }

}  // namespace kvasir::text::hf
