#include "jinja/brace_format.h"

#include <algorithm>

#include "jinja/access.h"
#include "jinja/format_spec.h"
#include "jinja/number.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

// Finds the values that replacement fields name, numbering the unnamed ones.
class FieldSource {
 public:
  FieldSource(Runtime& runtime, const Arguments& arguments) : runtime_(runtime), arguments_(arguments) {}

  // `path`: a number or a name (or nothing), then .attribute and [key] steps.
  Result<Value> find(std::string_view path) {
    const std::size_t head_size = std::min(path.find_first_of(".["), path.size());
    KVASIR_TRY(Value value, root(path.substr(0, head_size)));
    path.remove_prefix(head_size);
    while (!path.empty()) {
      KVASIR_TRY(value, step(value, path));
    }
    return value;
  }

 private:
  Result<Value> root(std::string_view head) {
    if (!head.empty() && (head[0] < '0' || head[0] > '9')) {
      const auto& keywords = arguments_.keywords;
      const auto it =
          std::ranges::find_if(keywords, [&](const auto& keyword) { return keyword.first == head; });
      if (it == keywords.end()) return template_error("format names the missing argument '{}'", head);
      return it->second;
    }
    std::size_t index = next_;
    if (head.empty()) {
      ++next_;
    } else {
      KVASIR_TRY(index, take_number(head));
      if (!head.empty()) return template_error("format has a malformed field name");
    }
    if (index >= arguments_.positional.size())
      return template_error("format has no argument number {}", index);
    return arguments_.positional[index];
  }

  Result<Value> step(const Value& value, std::string_view& path) {
    if (path[0] == '.') {
      const std::size_t end = std::min(path.find_first_of(".[", 1), path.size());
      const std::string name(path.substr(1, end - 1));
      path.remove_prefix(end);
      return get_attribute(runtime_, value, name);
    }
    const std::size_t close = path.find(']');
    if (path[0] != '[' || close == std::string_view::npos)
      return template_error("format has a malformed field name");
    const std::string_view key = path.substr(1, close - 1);
    path.remove_prefix(close + 1);
    if (const auto index = parse_int(key, 10)) return get_item(runtime_, value, Value::integer(*index));
    return get_item(runtime_, value, Value::string(std::string(key)));
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
};

// `field` is what stands between the braces: path[!conversion][:spec].
Result<std::string> format_field(Runtime& runtime, FieldSource& source, std::string_view field) {
  const std::size_t colon = std::min(field.find(':'), field.size());
  std::string_view path = field.substr(0, colon);
  const std::string_view spec_text = colon < field.size() ? field.substr(colon + 1) : std::string_view();
  char conversion = 0;
  if (path.size() >= 2 && path[path.size() - 2] == '!') {
    conversion = path.back();
    path.remove_suffix(2);
  }
  KVASIR_TRY(Value value, source.find(path));
  if (conversion == 'r') {
    std::string shown;
    KVASIR_CHECKED(append_repr(runtime, value, shown));
    value = Value::string(std::move(shown));
  } else if (conversion == 's') {
    KVASIR_TRY(std::string shown, to_text(runtime, value));
    value = Value::string(std::move(shown));
  } else if (conversion != 0) {
    return template_error("unknown format conversion '!{}'", conversion);
  }
  KVASIR_TRY(const FormatSpec spec, parse_format_spec(spec_text));
  return format_value(runtime, value, spec);
}

}  // namespace

Result<Value> brace_format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_CHECKED(runtime.charge_bytes(self.as_string().size()));
  std::string_view rest = self.as_string();
  FieldSource source(runtime, arguments);
  const bool is_foreign = std::ranges::any_of(arguments.positional, has_foreign) ||
                          std::ranges::any_of(arguments.keywords, [](const auto& keyword) {
                            return has_foreign(keyword.second);
                          });
  TracedText out;
  while (!rest.empty()) {
    const std::size_t brace = std::min(rest.find_first_of("{}"), rest.size());
    out.append_part(self.text(), self.as_string().size() - rest.size(), brace);
    rest.remove_prefix(brace);
    if (rest.empty()) break;
    const char open = rest[0];
    rest.remove_prefix(1);
    if (rest.starts_with(open)) {
      out.append(std::string_view(&open, 1));
      rest.remove_prefix(1);
      continue;
    }
    if (open == '}') return template_error("single '}}' encountered in format string");
    const std::size_t close = rest.find_first_of("{}");
    if (close == std::string_view::npos)
      return template_error("expected '}}' before the end of the format string");
    if (rest[close] == '{') return template_error("nested replacement fields are not supported");
    KVASIR_TRY(const std::string piece, format_field(runtime, source, rest.substr(0, close)));
    if (is_foreign) {
      out.append_foreign(piece);
    } else {
      out.append(piece);
    }
    rest.remove_prefix(close + 1);
  }
  return runtime.make_string(std::move(out));
}

}  // namespace kvasir::jinja
