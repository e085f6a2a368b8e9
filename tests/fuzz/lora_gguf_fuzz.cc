// Any bytes as a GGUF file of an adapter: an error of one line, or pairs of matrices that fit each other.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "lora/gguf_adapter.h"
#include "lora_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("adapter", 0);
  CHECK(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  kvasir::model::ModelConfig config;
  config.architecture = "llama";
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  CHECK(kvasir::lora::num_gguf_numbers(path) >= 0);
  kvasir::testing::check_adapter(kvasir::lora::read_gguf_adapter(path, config));
  return 0;
}
