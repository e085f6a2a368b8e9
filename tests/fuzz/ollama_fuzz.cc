// Any bytes as a manifest of Ollama: an error of one line, or a digest that is safe in a path.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "store/ollama_models.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto layer = kvasir::store::parse_ollama_manifest(json, "fuzz.json");
  if (!layer) {
    CHECK(layer.error().message.starts_with("fuzz.json: "));
    CHECK(layer.error().message.find('\n') == std::string::npos);
    return 0;
  }
  CHECK(layer->size_bytes >= 0 && layer->digest.size() == 64);
  CHECK(layer->digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  return 0;
}
