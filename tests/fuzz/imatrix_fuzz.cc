// Any bytes as an importance file: an error of one line, or finite numbers that are not below 0.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "io/imatrix_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto copy = kvasir::AlignedBuffer::allocate(static_cast<std::int64_t>(size));
  CHECK(copy);
  if (size > 0) std::memcpy(copy->data(), data, size);
  const auto imatrix = kvasir::io::parse_imatrix({copy->data(), size}, "fuzz.imatrix");
  if (!imatrix) {
    CHECK(!imatrix.error().message.empty() && imatrix.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const auto& [name, means] : imatrix->mean_squares) {
    for (const float mean : means) CHECK(std::isfinite(mean) && mean >= 0.0f);
  }
  return 0;
}
