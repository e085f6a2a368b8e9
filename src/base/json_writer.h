// Writes JSON straight into a string: no tree in between.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kvasir {

// The most bytes of the text as a JSON string, its quotes included.
std::int64_t json_string_bytes(std::string_view text);

// Appends JSON that another writer made, with U+0085, U+2028 and U+2029 escaped in its strings: readers that take lines
// as Python's splitlines() does, such as httpx, would cut it there. JsonWriter escapes them itself.
void append_without_line_breaks(std::string_view json, std::string& out);

// Appends one JSON value (RFC 8259) to a caller's string as the calls come in; commas, colons and indentation
// are its work. The output is always valid UTF-8: each invalid piece of a string becomes U+FFFD. Numbers are
// the shortest that read back as the same value; NaN and infinities, which JSON lacks, become null unless the
// caller names a stand-in with number().
//
// Calls out of order (a value in an object without a key, an unmatched end) are bugs and CHECK.
// Thread safety: none.
//
//   JsonWriter json(out);
//   json.begin_object().member("id", id).key("choices").begin_array();
//   ...
//   json.end_array().end_object();
class JsonWriter {
 public:
  enum class Style : std::uint8_t { kCompact, kPretty };  // kPretty: two spaces a level, one member a line

  // `out` must outlive the writer; what it holds already stays.
  explicit JsonWriter(std::string& out, Style style = Style::kCompact) : out_(out), style_(style) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto flag) { return literal(flag ? "true" : "false"); }
  JsonWriter& value(std::signed_integral auto number) { return integer(static_cast<std::int64_t>(number)); }
  JsonWriter& value(std::unsigned_integral auto number) requires(!std::same_as<decltype(number), bool>) {
    return integer(static_cast<std::uint64_t>(number));
  }
  JsonWriter& value(float number);
  JsonWriter& value(double number);
  JsonWriter& null() { return literal("null"); }
  // Nothing is null.
  template <typename T>
  JsonWriter& value(const std::optional<T>& content) {
    return content ? value(*content) : null();
  }

  // `number`, or `stand_in` when it is NaN or infinite.
  JsonWriter& number(double number, double stand_in);

  // A value that is JSON already, such as a schema passed through; it is copied as it is.
  JsonWriter& raw(std::string_view json) { return literal(json); }

  JsonWriter& member(std::string_view name, const auto& content) { return key(name).value(content); }
  JsonWriter& member_null(std::string_view name) { return key(name).null(); }

  // True once exactly one whole value has been written.
  bool complete() const { return done_; }

 private:
  struct Scope {
    bool is_object;
    bool empty;
  };

  void before_value();
  void after_value();
  void begin(bool is_object);
  void end(bool is_object);
  void new_line();
  void append_string(std::string_view text);
  JsonWriter& literal(std::string_view text);
  JsonWriter& integer(std::int64_t number);
  JsonWriter& integer(std::uint64_t number);

  std::string& out_;
  Style style_;
  std::vector<Scope> scopes_;
  bool have_key_ = false;
  bool done_ = false;
};

}  // namespace kvasir
