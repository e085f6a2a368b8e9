#include "grammar/schema/json_value.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/printable.h"
#include "grammar/schema/decimal.h"

namespace kvasir::grammar {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxScanned = 12;
constexpr std::size_t kMaxEnumValues = 20'000;

// Reads the document of simdjson's on-demand parser, which gives numbers as they are written.
class JsonReader {
 public:
  Result<std::unique_ptr<JsonValue>> read(std::string_view text) {
    simdjson::ondemand::parser parser;
    const simdjson::padded_string padded(text);
    simdjson::ondemand::document document;
    auto root = std::make_unique<JsonValue>();
    if (const auto error = parser.iterate(padded).get(document)) return broken(error);
    KVASIR_CHECKED(read_document(document, *root));
    const char* behind = nullptr;
    const bool has_more = document.current_location().get(behind) == simdjson::SUCCESS;
    if (has_more) return make_error(ErrorKind::kUsage, "the schema is not JSON: text behind its end");
    return root;
  }

 private:
  static std::unexpected<Error> broken(simdjson::error_code error) {
    return make_error(ErrorKind::kUsage, fmt::format("the schema is not JSON: {}", simdjson::error_message(error)));
  }

  Status read_document(simdjson::ondemand::document& document, JsonValue& value) {
    simdjson::ondemand::json_type type;
    if (const auto error = document.type().get(type)) return broken(error);
    if (type == simdjson::ondemand::json_type::array || type == simdjson::ondemand::json_type::object) {
      simdjson::ondemand::value inner;
      if (const auto error = document.get_value().get(inner)) return broken(error);
      return read_value(inner, value, 1);
    }
    if (type == simdjson::ondemand::json_type::boolean) {
      bool is_true = false;
      if (const auto error = document.get_bool().get(is_true)) return broken(error);
      value.kind = is_true ? JsonValue::Kind::kTrue : JsonValue::Kind::kFalse;
      return {};
    }
    return make_error(ErrorKind::kUsage, "a schema is an object, true or false");
  }

  Status read_value(simdjson::ondemand::value from, JsonValue& value, int depth) {
    if (depth > kMaxDepth) {
      return make_error(ErrorKind::kUnmet, fmt::format("the schema is nested more than {} deep", kMaxDepth));
    }
    simdjson::ondemand::json_type type;
    if (const auto error = from.type().get(type)) return broken(error);
    switch (type) {
      case simdjson::ondemand::json_type::array:
        return read_array(from, value, depth);
      case simdjson::ondemand::json_type::object:
        return read_object(from, value, depth);
      case simdjson::ondemand::json_type::string: {
        std::string_view text;
        if (const auto error = from.get_string().get(text)) return broken(error);
        value.kind = JsonValue::Kind::kString;
        value.text = text;
        return {};
      }
      case simdjson::ondemand::json_type::number: {
        double ignored = 0.0;
        std::string_view text = from.raw_json_token();
        while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) {
          text.remove_suffix(1);
        }
        value.kind = JsonValue::Kind::kNumber;
        value.text = text;
        const auto error = from.get_double().get(ignored);  // checks the form; any size is taken
        if (error && error != simdjson::NUMBER_OUT_OF_RANGE) return broken(error);
        return {};
      }
      case simdjson::ondemand::json_type::boolean: {
        bool is_true = false;
        if (const auto error = from.get_bool().get(is_true)) return broken(error);
        value.kind = is_true ? JsonValue::Kind::kTrue : JsonValue::Kind::kFalse;
        return {};
      }
      case simdjson::ondemand::json_type::null: {
        bool is_null = false;
        if (const auto error = from.is_null().get(is_null)) return broken(error);
        return {};
      }
      default:
        return make_error(ErrorKind::kUsage, "the schema is not JSON");
    }
  }

  Status read_array(simdjson::ondemand::value from, JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::kArray;
    simdjson::ondemand::array array;
    if (const auto error = from.get_array().get(array)) return broken(error);
    for (auto element : array) {
      simdjson::ondemand::value inner;
      if (const auto error = element.get(inner)) return broken(error);
      if (value.key == "enum" && value.children.size() == kMaxEnumValues) {
        return make_error(ErrorKind::kUnmet,
                          fmt::format("'{}': has more than {} values", printable(value.pointer()), kMaxEnumValues));
      }
      KVASIR_CHECKED(read_value(inner, add_child(value), depth + 1));
    }
    return {};
  }

  Status read_object(simdjson::ondemand::value from, JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::kObject;
    simdjson::ondemand::object object;
    if (const auto error = from.get_object().get(object)) return broken(error);
    std::unordered_set<std::string_view> keys;  // once there are many
    const auto is_new = [&](const JsonValue& child) {
      if (value.children.size() <= kMaxScanned) return value.find(child.key) == &child;
      if (value.children.size() == kMaxScanned + 1) {
        for (std::size_t i = 0; i < kMaxScanned; ++i) keys.insert(value.children[i]->key);
      }
      return keys.insert(child.key).second;
    };
    for (auto member : object) {
      std::string_view key;
      if (const auto error = member.unescaped_key().get(key)) return broken(error);
      JsonValue& child = add_child(value);
      child.key = key;
      if (!is_new(child)) {
        return make_error(ErrorKind::kUsage, fmt::format("{}: this key is there twice", printable(child.pointer())));
      }
      simdjson::ondemand::value inner;
      if (const auto error = member.value().get(inner)) return broken(error);
      KVASIR_CHECKED(read_value(inner, child, depth + 1));
    }
    return {};
  }

  JsonValue& add_child(JsonValue& parent) {
    parent.children.push_back(std::make_unique<JsonValue>());
    parent.children.back()->parent = &parent;
    parent.children.back()->position = ++num_values_;
    return *parent.children.back();
  }

  std::uint32_t num_values_ = 0;
};

std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

std::string unescaped(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool is_escape = token[i] == '~' && i + 1 < token.size();
    if (is_escape) ++i;
    text += !is_escape ? token[i] : token[i] == '1' ? '/' : '~';
  }
  return text;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  if (kind != Kind::kObject) return nullptr;
  const auto found = std::ranges::find_if(children, [&](const auto& child) { return child->key == name; });
  return found == children.end() ? nullptr : found->get();
}

std::string JsonValue::pointer() const {
  if (parent == nullptr) return {};
  std::string place;
  if (parent->kind == Kind::kObject) {
    place = escaped(key);
  } else {
    const auto self = std::ranges::find_if(parent->children, [&](const auto& child) { return child.get() == this; });
    place = std::to_string(self - parent->children.begin());
  }
  return parent->pointer() + "/" + place;
}

Result<std::unique_ptr<const JsonValue>> read_json(std::string_view text) { return JsonReader().read(text); }

const JsonValue* find_pointer(const JsonValue& root, std::string_view pointer) {
  const JsonValue* value = &root;
  while (!pointer.empty() && value != nullptr) {
    if (!pointer.starts_with('/')) return nullptr;
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string token = unescaped(pointer.substr(0, end));
    pointer.remove_prefix(end);
    if (value->is_array()) {
      std::size_t index = 0;
      const auto [last, error] = std::from_chars(token.data(), token.data() + token.size(), index);
      const bool is_index = error == std::errc() && last == token.data() + token.size();
      value = is_index && index < value->children.size() ? value->children[index].get() : nullptr;
    } else {
      value = value->find(token);
    }
  }
  return value;
}

bool is_equal(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  if (a.is_number()) {
    const auto x = Decimal::parse(a.text);
    const auto y = Decimal::parse(b.text);
    return x && y && *x == *y;
  }
  if (a.text != b.text) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    const JsonValue* other = a.is_object() ? b.find(a.children[i]->key) : b.children[i].get();
    if (other == nullptr || !is_equal(*a.children[i], *other)) return false;
  }
  return true;
}

}  // namespace kvasir::grammar
