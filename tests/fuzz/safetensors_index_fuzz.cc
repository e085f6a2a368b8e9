// Any text as model.safetensors.index.json: an error of one line, or names of files in the folder itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/safetensors_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto map = kvasir::io::parse_safetensors_index(text, "fuzz.json");
  if (!map) {
    CHECK(!map.error().message.empty() && map.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const auto& [tensor, file] : *map) CHECK(file.find('/') == file.npos && file != ".." && !file.empty());
  return 0;
}
