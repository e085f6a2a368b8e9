// Any bytes as a safetensors file: an error of one line, or tensors that lie inside the bytes, apart from each other,
// and have the size of their shapes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = kvasir::io::parse_safetensors(bytes, "fuzz.safetensors");
  if (!tensors) {
    CHECK(!tensors.error().message.empty() && tensors.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const std::byte* end = bytes.data();
  for (const kvasir::io::SafetensorsTensor& tensor : *tensors) {
    CHECK(tensor.data.data() >= end && tensor.num_elements() >= 0);
    end = tensor.data.data() + tensor.data.size();
  }
  CHECK(end <= bytes.data() + bytes.size());
  return 0;
}
