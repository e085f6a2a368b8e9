#include "io/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/printable.h"

namespace kvasir::io {
namespace {

constexpr const char* kTypeNames[] = {"a boolean",      "an integer",     "an integer",
                                      "a number",       "a string",       "an integer array",
                                      "a number array", "a string array", "a boolean array"};

std::unexpected<Error> wrong_type(std::string_view key, const char* wanted, const MetadataValue& value) {
  return make_error(ErrorKind::kBadFile, fmt::format("metadata: {} must be {}, but it is {}", printable(key),
                                                     wanted, kTypeNames[value.index()]));
}

std::unexpected<Error> missing(std::string_view key) {
  return make_error(ErrorKind::kBadFile, fmt::format("metadata: {} is missing", printable(key)));
}

template <class T>
std::string out_of_range(std::string_view key, std::int64_t min, std::int64_t max, T value) {
  return fmt::format("metadata: {} must be between {} and {}, but it is {}", printable(key), min, max, value);
}

// Doubles up to here are whole numbers without a gap.
constexpr double kMaxWholeDouble = 9007199254740992.0;

std::optional<std::int64_t> whole(double number) {
  const bool is_whole = std::abs(number) <= kMaxWholeDouble && number == std::trunc(number);
  return is_whole ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

// The one value of an array whose elements are all equal; the value itself when it is no array; nothing when
// there is no such value.
std::optional<MetadataValue> single_value(const MetadataValue& value) {
  const auto single = []<class Content>(const Content& content) -> std::optional<MetadataValue> {
    if constexpr (requires { content.front(); } && !std::is_same_v<Content, std::string>) {
      const bool is_uniform = !content.empty() &&
                              std::ranges::adjacent_find(content, std::not_equal_to<>()) == content.end();
      if (!is_uniform) return std::nullopt;
      return MetadataValue(static_cast<typename Content::value_type>(content.front()));
    } else {
      return content;
    }
  };
  return std::visit(single, value);
}

std::unexpected<Error> no_single_value(std::string_view key, const char* wanted, const MetadataValue& value) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("metadata: {} must be {}, but it is {} of different values, or an empty one",
                                printable(key), wanted, kTypeNames[value.index()]));
}

// The value behind `key` as one value; nothing when the key is absent.
Result<std::optional<MetadataValue>> find_single(const Metadata& metadata, std::string_view key,
                                                 const char* wanted) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<MetadataValue> single = single_value(*value);
  if (!single) return no_single_value(key, wanted, *value);
  return single;
}

template <class T>
Result<T> require(std::string_view key, Result<std::optional<T>> found) {
  if (!found) return std::unexpected(std::move(found).error());
  if (!*found) return missing(key);
  return std::move(**found);
}

}  // namespace

Metadata::Metadata(std::map<std::string, MetadataValue, std::less<>> values) : values_(std::move(values)) {}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Result<std::optional<std::int64_t>> Metadata::find_int(std::string_view key, std::int64_t min,
                                                       std::int64_t max) const {
  KVASIR_TRY(const auto value, find_single(*this, key, "an integer"));
  if (!value) return std::nullopt;
  std::int64_t number = 0;
  if (const auto* as_signed = std::get_if<std::int64_t>(&*value)) {
    number = *as_signed;
  } else if (const auto* as_unsigned = std::get_if<std::uint64_t>(&*value)) {
    if (*as_unsigned > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return make_error(ErrorKind::kBadFile, out_of_range(key, min, max, *as_unsigned));
    }
    number = static_cast<std::int64_t>(*as_unsigned);
  } else if (const auto* as_float = std::get_if<double>(&*value); as_float != nullptr && whole(*as_float)) {
    number = *whole(*as_float);
  } else {
    return wrong_type(key, "an integer", *value);
  }
  if (number < min || number > max)
    return make_error(ErrorKind::kBadFile, out_of_range(key, min, max, number));
  return number;
}

Result<std::optional<double>> Metadata::find_float(std::string_view key) const {
  KVASIR_TRY(const auto value, find_single(*this, key, "a number"));
  if (!value) return std::nullopt;
  if (const auto* number = std::get_if<double>(&*value)) {
    if (std::isfinite(*number)) return *number;
    return make_error(ErrorKind::kBadFile, fmt::format("metadata: {} must be a finite number, but it is {}",
                                                       printable(key), *number));
  }
  if (const auto* number = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&*value)) return static_cast<double>(*number);
  return wrong_type(key, "a number", *value);
}

Result<std::optional<bool>> Metadata::find_bool(std::string_view key) const {
  KVASIR_TRY(const auto value, find_single(*this, key, "a boolean"));
  if (!value) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(&*value)) return *flag;
  const auto number = find_float(key);
  if (number && (**number == 0.0 || **number == 1.0)) return **number == 1.0;
  return wrong_type(key, "a boolean", *value);
}

Result<std::optional<std::string>> Metadata::find_string(std::string_view key) const {
  KVASIR_TRY(const auto value, find_single(*this, key, "a string"));
  if (!value) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&*value)) return *text;
  return wrong_type(key, "a string", *value);
}

Result<std::int64_t> Metadata::get_int(std::string_view key, std::int64_t min, std::int64_t max) const {
  return require(key, find_int(key, min, max));
}

Result<double> Metadata::get_float(std::string_view key) const { return require(key, find_float(key)); }

Result<std::string> Metadata::get_string(std::string_view key) const {
  return require(key, find_string(key));
}

Result<const std::vector<std::string>*> Metadata::find_strings(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* texts = std::get_if<std::vector<std::string>>(value);
  if (texts == nullptr) return wrong_type(key, "a string array", *value);
  return texts;
}

Result<std::optional<std::vector<std::int64_t>>> Metadata::find_ints(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(value)) return *ints;
  if (const auto* flags = std::get_if<std::vector<bool>>(value)) {
    return std::vector<std::int64_t>(flags->begin(), flags->end());
  }
  const auto* floats = std::get_if<std::vector<double>>(value);
  if (floats == nullptr || !std::ranges::all_of(*floats, [](double v) { return whole(v).has_value(); })) {
    return wrong_type(key, "an integer array", *value);
  }
  std::vector<std::int64_t> ints;
  ints.reserve(floats->size());
  for (const double number : *floats) ints.push_back(*whole(number));
  return ints;
}

Result<std::optional<std::vector<double>>> Metadata::find_floats(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* floats = std::get_if<std::vector<double>>(value)) return *floats;
  const auto* ints = std::get_if<std::vector<std::int64_t>>(value);
  if (ints == nullptr) return wrong_type(key, "a number array", *value);
  return std::vector<double>(ints->begin(), ints->end());
}

bool Metadata::is_array(std::string_view key) const {
  const MetadataValue* value = find(key);
  return value != nullptr && value->index() >= 5;
}

}  // namespace kvasir::io
