#include "base/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/utf8.h"

namespace kvasir {
namespace {

// 32 bytes hold any 64-bit integer and the shortest form of any double.
template <class Number>
void append_number(std::string& out, Number number) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  CHECK(error == std::errc());
  out.append(digits, end);
}

bool is_plain(unsigned char byte) { return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\'; }

void append_escaped(std::string& out, unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

// The escape of a line break beyond ASCII that the text begins with; empty: there is none.
std::string_view escaped_line_break(std::string_view text) {
  if (text.starts_with("\xC2\x85")) return "\\u0085";
  if (text.starts_with("\xE2\x80\xA8")) return "\\u2028";
  if (text.starts_with("\xE2\x80\xA9")) return "\\u2029";
  return {};
}

}  // namespace

void append_without_line_breaks(std::string_view json, std::string& out) {
  while (true) {
    const std::size_t at = json.find_first_of("\xC2\xE2");
    out.append(json.substr(0, at));
    if (at == json.npos) return;
    json.remove_prefix(at);
    const std::string_view escaped = escaped_line_break(json);
    const std::size_t num_bytes = static_cast<unsigned char>(json[0]) == 0xC2 ? 2 : 3;
    out.append(escaped.empty() ? json.substr(0, num_bytes) : escaped);
    json.remove_prefix(std::min(num_bytes, json.size()));
  }
}

std::int64_t json_string_bytes(std::string_view text) {
  std::int64_t bytes = 2;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // A byte that is no UTF-8 becomes U+FFFD, of three; of others 0x80 and above stand for themselves.
    bytes += is_plain(byte) ? 1 : byte >= 0x80 ? 3 : byte >= 0x20 ? 2 : 6;
  }
  return bytes;
}

JsonWriter& JsonWriter::begin_object() {
  begin(true);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  end(true);
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  begin(false);
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  end(false);
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  CHECK(!scopes_.empty() && scopes_.back().is_object && !have_key_);
  if (!scopes_.back().empty) out_ += ',';
  scopes_.back().empty = false;
  new_line();
  append_string(name);
  out_ += style_ == Style::kPretty ? ": " : ":";
  have_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_string(text);
  after_value();
  return *this;
}

JsonWriter& JsonWriter::value(float number) {
  if (!std::isfinite(number)) return null();
  before_value();
  append_number(out_, number);
  after_value();
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  before_value();
  append_number(out_, number);
  after_value();
  return *this;
}

JsonWriter& JsonWriter::number(double number, double stand_in) {
  return value(std::isfinite(number) ? number : stand_in);
}

JsonWriter& JsonWriter::literal(std::string_view text) {
  before_value();
  out_ += text;
  after_value();
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  before_value();
  append_number(out_, number);
  after_value();
  return *this;
}

JsonWriter& JsonWriter::integer(std::uint64_t number) {
  before_value();
  append_number(out_, number);
  after_value();
  return *this;
}

void JsonWriter::before_value() {
  CHECK(!done_);
  if (scopes_.empty()) return;
  Scope& scope = scopes_.back();
  if (scope.is_object) {
    CHECK(have_key_);
    have_key_ = false;
    return;
  }
  if (!scope.empty) out_ += ',';
  scope.empty = false;
  new_line();
}

void JsonWriter::after_value() {
  if (scopes_.empty()) done_ = true;
}

void JsonWriter::begin(bool is_object) {
  before_value();
  out_ += is_object ? '{' : '[';
  scopes_.push_back({.is_object = is_object, .empty = true});
}

void JsonWriter::end(bool is_object) {
  CHECK(!scopes_.empty() && scopes_.back().is_object == is_object && !have_key_);
  const bool empty = scopes_.back().empty;
  scopes_.pop_back();
  if (!empty) new_line();
  out_ += is_object ? '}' : ']';
  after_value();
}

void JsonWriter::new_line() {
  if (style_ == Style::kCompact) return;
  out_ += '\n';
  out_.append(2 * scopes_.size(), ' ');
}

void JsonWriter::append_string(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    std::size_t run = 0;
    while (run < text.size() && is_plain(static_cast<unsigned char>(text[run]))) ++run;
    out_.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text[0]);
    std::size_t length = 1;
    if (byte < 0x80) {
      append_escaped(out_, byte);
    } else {
      const Utf8Prefix prefix = utf8_prefix(text);
      const std::string_view escaped = escaped_line_break(text);
      length = static_cast<std::size_t>(prefix.num_bytes);
      out_ += !escaped.empty() ? escaped : prefix.valid ? text.substr(0, length) : kReplacementCharacter;
    }
    text.remove_prefix(length);
  }
  out_ += '"';
}

}  // namespace kvasir
