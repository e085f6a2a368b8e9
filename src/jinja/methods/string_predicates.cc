#include "base/code_point.h"
#include "jinja/methods/method_tables.h"
#include "jinja/python_string.h"

namespace kvasir::jinja {
namespace {

// True when the string is not empty and every character has one of the properties.
template <std::uint16_t kMask, bool kIfEmpty = false>
Result<Value> all_are(Runtime& runtime, const Value& self, const Arguments&) {
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    if (!has_property(c.value, kMask)) return Value::boolean(false);
    i += c.size_bytes;
  }
  return Value::boolean(kIfEmpty || !text.empty());
}

// str.islower and str.isupper: some character of the wanted case and none of another.
template <std::uint16_t kWanted>
Result<Value> all_cased_are(Runtime& runtime, const Value& self, const Arguments&) {
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  bool seen = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    if (has_property(c.value, kCased & static_cast<std::uint16_t>(~kWanted))) return Value::boolean(false);
    seen = seen || has_property(c.value, kWanted);
    i += c.size_bytes;
  }
  return Value::boolean(seen);
}

Result<Value> istitle(Runtime& runtime, const Value& self, const Arguments&) {
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  bool seen = false;
  bool after_cased = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool capital = has_property(c.value, kUppercase | kTitlecase);
    const bool lower = has_property(c.value, kLowercase);
    if ((capital && after_cased) || (lower && !after_cased)) return Value::boolean(false);
    after_cased = capital || lower;
    seen = seen || after_cased;
    i += c.size_bytes;
  }
  return Value::boolean(seen);
}

Result<Value> isascii(Runtime&, const Value& self, const Arguments&) {
  return Value::boolean(self.text().is_ascii());
}

Result<Value> isidentifier(Runtime& runtime, const Value& self, const Arguments&) {
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool allowed =
        c.value == '_' || has_property(c.value, kAlphabetic) || (i > 0 && has_property(c.value, kDecimal));
    if (!allowed) return Value::boolean(false);
    i += c.size_bytes;
  }
  return Value::boolean(!text.empty());
}

constexpr std::uint16_t kAlphanumeric = kAlphabetic | kDecimal | kDigit | kNumeric;

constexpr Builtin kStringPredicates[] = {
    {"isalnum", 0, {}, all_are<kAlphanumeric>},
    {"isalpha", 0, {}, all_are<kAlphabetic>},
    {"isascii", 0, {}, isascii},
    {"isdecimal", 0, {}, all_are<kDecimal>},
    {"isdigit", 0, {}, all_are<kDigit>},
    {"isidentifier", 0, {}, isidentifier},
    {"islower", 0, {}, all_cased_are<kLowercase>},
    {"isnumeric", 0, {}, all_are<kNumeric>},
    {"isprintable", 0, {}, all_are<kPrintable, true>},
    {"isspace", 0, {}, all_are<kSpace>},
    {"istitle", 0, {}, istitle},
    {"isupper", 0, {}, all_cased_are<kUppercase>},
};

}  // namespace

std::span<const Builtin> string_predicates() { return kStringPredicates; }

}  // namespace kvasir::jinja
