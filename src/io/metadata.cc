#include "io/metadata.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
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

// The value behind `key` when it has the type T; nothing when the key is absent.
template <class T>
Result<std::optional<T>> find_typed(const Metadata& metadata, std::string_view key, const char* wanted) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return std::nullopt;
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) return wrong_type(key, wanted, *value);
  return *typed;
}

template <class T>
Result<const std::vector<T>*> find_array(const Metadata& metadata, std::string_view key, const char* wanted) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<std::vector<T>>(value);
  if (array == nullptr) return wrong_type(key, wanted, *value);
  return array;
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
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (const auto* as_signed = std::get_if<std::int64_t>(value)) {
    number = *as_signed;
  } else if (const auto* as_unsigned = std::get_if<std::uint64_t>(value)) {
    if (*as_unsigned > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return make_error(ErrorKind::kBadFile, out_of_range(key, min, max, *as_unsigned));
    }
    number = static_cast<std::int64_t>(*as_unsigned);
  } else {
    return wrong_type(key, "an integer", *value);
  }
  if (number < min || number > max)
    return make_error(ErrorKind::kBadFile, out_of_range(key, min, max, number));
  return number;
}

Result<std::optional<double>> Metadata::find_float(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(value)) {
    if (std::isfinite(*number)) return *number;
    return make_error(ErrorKind::kBadFile, fmt::format("metadata: {} must be a finite number, but it is {}",
                                                       printable(key), *number));
  }
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(value)) return static_cast<double>(*number);
  return wrong_type(key, "a number", *value);
}

Result<std::optional<bool>> Metadata::find_bool(std::string_view key) const {
  return find_typed<bool>(*this, key, "a boolean");
}

Result<std::optional<std::string>> Metadata::find_string(std::string_view key) const {
  return find_typed<std::string>(*this, key, "a string");
}

Result<std::int64_t> Metadata::get_int(std::string_view key, std::int64_t min, std::int64_t max) const {
  return require(key, find_int(key, min, max));
}

Result<double> Metadata::get_float(std::string_view key) const { return require(key, find_float(key)); }

Result<std::string> Metadata::get_string(std::string_view key) const {
  return require(key, find_string(key));
}

Result<const std::vector<std::string>*> Metadata::find_strings(std::string_view key) const {
  return find_array<std::string>(*this, key, "a string array");
}

Result<const std::vector<std::int64_t>*> Metadata::find_ints(std::string_view key) const {
  return find_array<std::int64_t>(*this, key, "an integer array");
}

Result<const std::vector<double>*> Metadata::find_floats(std::string_view key) const {
  return find_array<double>(*this, key, "a number array");
}

}  // namespace kvasir::io
