// Writes a GGUF model as a folder as the hub has them, for tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kvasir::testing {

struct FolderOptions {
  int num_shards = 1;
  std::string more_config;  // members of config.json, each with a comma before it
  // Changes a tensor's values, by the name that the folder gives it.
  std::function<void(const std::string& name, std::vector<float>& values)> change;
};

// The models of tests/cases/models, widened to F32: RoPE by halves and, in a gemma3, norms around 0. Makes the folder.
void write_folder(const std::string& gguf_path, const std::string& folder, const FolderOptions& options = {});

}  // namespace kvasir::testing
