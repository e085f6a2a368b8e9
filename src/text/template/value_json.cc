#include <simdjson.h>

#include "text/template/template_error.h"
#include "text/template/value.h"

namespace kvasir::text::jinja {
namespace {

namespace dom = simdjson::dom;

Result<Value> convert(const dom::element& element, std::size_t depth) {
  if (depth > kMaxValueDepth)
    return limit_error("JSON nests deeper than the limit of {} levels", kMaxValueDepth);
  switch (element.type()) {
    case dom::element_type::NULL_VALUE:
      return Value::none();
    case dom::element_type::BOOL:
      return Value::boolean(bool{element});
    case dom::element_type::INT64:
      return Value::integer(std::int64_t{element});
    case dom::element_type::UINT64:
      return Value::big_integer(fmt::format("{}", std::uint64_t{element}));
    case dom::element_type::DOUBLE:
      return Value::number(double{element});
    case dom::element_type::STRING:
      return Value::string(std::string(std::string_view{element}));
    case dom::element_type::ARRAY: {
      std::vector<Value> items;
      for (const dom::element item : dom::array(element)) {
        KVASIR_TRY(Value value, convert(item, depth + 1));
        items.push_back(std::move(value));
      }
      return Value::list(std::move(items));
    }
    case dom::element_type::OBJECT:
      break;
  }
  std::vector<Value::Entry> entries;
  for (const auto& [key, member] : dom::object(element)) {
    KVASIR_TRY(Value value, convert(member, depth + 1));
    entries.emplace_back(Value::string(std::string(key)), std::move(value));
  }
  return Value::dict(std::move(entries));
}

}  // namespace

Result<Value> Value::from_json(std::string_view json) {
  dom::parser parser;
  dom::element root;
  if (const auto code = parser.parse(simdjson::padded_string(json)).get(root)) {
    return template_error("malformed JSON: {}", simdjson::error_message(code));
  }
  return convert(root, 1);
}

}  // namespace kvasir::text::jinja
