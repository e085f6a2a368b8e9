// Any bytes as a GGUF file: an error of one line, or tensors that lie inside the bytes.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/check.h"
#include "io/finite_check.h"
#include "io/gguf_reader.h"

namespace {

void check_tensor(const kvasir::TensorView& tensor, std::span<const std::byte> bytes) {
  const auto num_bytes = static_cast<std::size_t>(tensor.num_bytes());
  CHECK(!std::less<>()(tensor.data, bytes.data()) && num_bytes <= bytes.size());
  CHECK(static_cast<std::size_t>(tensor.data - bytes.data()) <= bytes.size() - num_bytes);
  const kvasir::Status finite = kvasir::io::check_finite(tensor);
  CHECK(finite || finite.error().message.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto contents = kvasir::io::parse_gguf(bytes, "fuzz.gguf");
  if (!contents) {
    CHECK(!contents.error().message.empty() && contents.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const kvasir::TensorView& tensor : contents->tensors) check_tensor(tensor, bytes);
  return 0;
}
