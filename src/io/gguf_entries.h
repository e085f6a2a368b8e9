// The key-value entries of a GGUF file as they lie in it, for whoever writes them into another file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// Numbers of value types in files.
enum class GgufValueType : std::uint32_t {
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
};

struct GgufEntry {
  std::string key;
  std::uint32_t type = 0;
  std::string value;  // its bytes; an array's begin with the type and number of its elements
};

GgufEntry uint32_entry(std::string key, std::uint32_t value);
GgufEntry float_entry(std::string key, float value);
GgufEntry bool_entry(std::string key, bool value);
GgufEntry string_entry(std::string key, std::string_view value);
GgufEntry strings_entry(std::string key, std::span<const std::string> values);
GgufEntry int32s_entry(std::string key, std::span<const std::int32_t> values);
GgufEntry floats_entry(std::string key, std::span<const float> values);

// In file order. Requires: a file that parse_gguf() takes. Error (kBadFile): bytes that are none.
Result<std::vector<GgufEntry>> read_gguf_entries(std::span<const std::byte> file);

}  // namespace kvasir::io
