// Any text as adapter_config.json beside any bytes as adapter_model.safetensors: an error of one line, or pairs of
// matrices that fit each other. The input is the text, a byte 0, and the bytes.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "lora/peft_adapter.h"
#include "lora_checks.h"

namespace {

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  CHECK(file.good());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path folder = [] {
    const auto made = std::filesystem::temp_directory_path() / ("kvasir-fuzz-" + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    return made;
  }();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  write(folder / "adapter_config.json", input.substr(0, end));
  write(folder / "adapter_model.safetensors", input.substr(std::min(end + 1, size)));
  kvasir::model::ModelConfig config;
  config.architecture = "llama";
  config.num_heads = 4;
  config.num_kv_heads = 2;
  CHECK(kvasir::lora::num_peft_numbers(folder.string()) >= 0);
  kvasir::testing::check_adapter(kvasir::lora::read_peft_adapter(folder.string(), config));
  return 0;
}
