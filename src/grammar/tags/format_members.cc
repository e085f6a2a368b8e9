// Members of format objects, and what may be wrong with them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/utf8.h"
#include "grammar/tags/format_lowering.h"

namespace kvasir::grammar {

std::unexpected<Error> tag_fault(const JsonValue& at, std::string_view what, ErrorKind kind) {
  return make_error(kind, fmt::format("structural tag, '{}': {}", printable_line(at.pointer()), what));
}

Result<const JsonValue*> FormatLowering::member(const JsonValue& format, std::string_view name) const {
  const JsonValue* found = format.find(name);
  if (found == nullptr) return tag_fault(format, fmt::format("'{}' is missing", name));
  return found;
}

Result<std::string> FormatLowering::string_member(const JsonValue& format, std::string_view name) const {
  KVASIR_TRY(const JsonValue* value, member(format, name));
  if (!value->is_string()) return tag_fault(*value, "this is no string");
  if (!is_valid_utf8(value->text)) return tag_fault(*value, "this is not UTF-8");
  return value->text;
}

Result<bool> FormatLowering::bool_member(const JsonValue& format, std::string_view name) const {
  const JsonValue* value = format.find(name);
  if (value == nullptr || value->kind == JsonValue::Kind::kNull) return false;
  if (!value->is_bool()) return tag_fault(*value, "this is neither true nor false");
  return value->kind == JsonValue::Kind::kTrue;
}

Result<std::vector<std::string>> FormatLowering::strings_member(const JsonValue& format,
                                                                std::string_view name) const {
  std::vector<std::string> strings;
  const JsonValue* value = format.find(name);
  if (value == nullptr || value->kind == JsonValue::Kind::kNull) return strings;
  if (!value->is_array()) return tag_fault(*value, "this is no list of strings");
  for (const auto& element : value->children) {
    if (!element->is_string() || element->text.empty()) return tag_fault(*element, "this is no string, or an empty one");
    if (!is_valid_utf8(element->text)) return tag_fault(*element, "this is not UTF-8");
    strings.push_back(element->text);
  }
  return strings;
}

Result<std::uint32_t> FormatLowering::count_of(const JsonValue& value) const {
  constexpr std::uint32_t kMaxCount = 100'000;
  std::uint32_t count = 0;
  const std::string& text = value.text;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (!value.is_number() || fault == std::errc::invalid_argument || (fault == std::errc{} && end != text.data() + text.size())) {
    return tag_fault(value, "this is no whole number of 0 and more");
  }
  if (fault != std::errc{} || count > kMaxCount) return tag_fault(value, fmt::format("this is more than {}", kMaxCount));
  return count;
}

Result<TokenId> FormatLowering::token_of(const JsonValue& token) {
  if (token.is_string()) {
    const std::optional<TokenId> id = options_.tokens.find ? options_.tokens.find(token.text) : std::nullopt;
    if (!id) return tag_fault(token, fmt::format("'{}' is not one token of the vocabulary", printable(token.text, 60)));
    return *id;
  }
  KVASIR_TRY(const std::uint32_t id, [&]() -> Result<std::uint32_t> {
    std::uint32_t number = 0;
    const std::string& text = token.text;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!token.is_number() || fault != std::errc{} || end != text.data() + text.size()) {
      return tag_fault(token, "this is neither a token's id nor its text");
    }
    return number;
  }());
  if (id >= static_cast<std::uint32_t>(options_.tokens.num_tokens)) {
    return tag_fault(token, fmt::format("the token {} is not in the vocabulary of {} tokens", id,
                                        options_.tokens.num_tokens));
  }
  return static_cast<TokenId>(id);
}

bool FormatLowering::may_be_empty(const JsonValue& format) {
  const std::string_view type = format.find("type")->text;
  const auto is_true = [&](std::string_view name) {
    const JsonValue* value = format.find(name);
    return value != nullptr && value->kind == JsonValue::Kind::kTrue;
  };
  const auto child_may = [](const std::unique_ptr<JsonValue>& child) { return may_be_empty(*child); };
  if (type == "const_string") return format.find("value")->text.empty();
  if (type == "json_schema" || type == "token" || type == "exclude_token") return false;
  if (type == "sequence") return std::ranges::all_of(format.find("elements")->children, child_may);
  if (type == "or") return std::ranges::any_of(format.find("elements")->children, child_may);
  if (type == "plus") return may_be_empty(*format.find("content"));
  if (type == "repeat") return format.find("min")->text == "0" || may_be_empty(*format.find("content"));
  if (type == "tag") {
    const JsonValue& begin = *format.find("begin");
    return begin.is_string() && begin.text.empty();
  }
  if (type == "triggered_tags" || type == "tags_with_separator") return !is_true("at_least_one");
  return true;
}

}  // namespace kvasir::grammar
