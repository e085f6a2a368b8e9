#include "engine/packed_copy_name.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "base/file_stamp.h"
#include "io/model_fingerprint.h"

namespace kvasir {

Result<io::PackedCopyName> packed_copy_name(const EngineConfig& config, std::string_view isa) {
  io::PackedCopyName name;
  if (config.packed_cache_directory.value_or("").empty()) return name;
  KVASIR_TRY(name.fingerprint, io::model_fingerprint(config.model_path));
  name.settings = fmt::format("layout {} {} {} {}", io::kPackedLayoutVersion, isa, config.fast ? "fast" : "exact",
                              config.quantize.empty() ? "stored" : config.quantize);
  std::vector<std::string> files = io::weight_files(config.model_path);
  files.push_back((std::filesystem::path(config.model_path) / "config.json").native());  // of a folder
  for (const std::string& file : files) {
    const FileStamp stamp = FileStamp::of(file);
    name.state += fmt::format("{}:{}:{} ", stamp.inode, stamp.bytes, stamp.changed_ns);
  }
  // A split set has many stamps, and the identity has its limits.
  name.state = fmt::format("{:016x}", io::hash_bytes(std::as_bytes(std::span(name.state))));
  std::error_code failure;
  const std::filesystem::path absolute = std::filesystem::absolute(config.model_path, failure);
  name.model_path = failure ? config.model_path : absolute.native();
  name.directory = *config.packed_cache_directory;
  return name;
}

}  // namespace kvasir
