// The key-value part of a model file, typed and range-checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// Integers of every width are widened; arrays keep one of three element families.
using MetadataValue =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>, std::vector<bool>>;

// Immutable after load; safe to read from any thread.
class Metadata {
 public:
  Metadata() = default;
  explicit Metadata(std::map<std::string, MetadataValue, std::less<>> values);

  // Null when the key is absent.
  const MetadataValue* find(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& values() const { return values_; }

  // Absent key -> nullopt. Wrong type, or an integer outside [min, max], is an Error that names the key, the
  // limit and the value. Writers differ, so one value may be spelt in several types: an integer as a whole
  // float, a boolean as 0 or 1, one value as an array of equal ones (a value per layer).
  Result<std::optional<std::int64_t>> find_int(std::string_view key, std::int64_t min,
                                               std::int64_t max) const;
  Result<std::optional<double>> find_float(
      std::string_view key) const;  // accepts integers; rejects NaN and inf
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;
  // As above, but an absent key is an Error too.
  Result<std::int64_t> get_int(std::string_view key, std::int64_t min, std::int64_t max) const;
  Result<double> get_float(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  // Absent key -> null; another type, or another family of elements, is an Error. They live as long as this.
  Result<const std::vector<std::string>*> find_strings(std::string_view key) const;
  // Absent key -> nullopt. Whole floats and booleans are integers here, and integers are floats.
  Result<std::optional<std::vector<std::int64_t>>> find_ints(std::string_view key) const;
  Result<std::optional<std::vector<double>>> find_floats(std::string_view key) const;
  // Whether the value is an array, of whatever elements.
  bool is_array(std::string_view key) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace kvasir::io
