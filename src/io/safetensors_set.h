// The safetensors files of one folder.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/mmap_file.h"
#include "io/safetensors.h"
#include "kvasir/result.h"

namespace kvasir::io {

// Maps the files and owns the mappings. Thread safety: const members may be called from any thread.
class SafetensorsSet {
 public:
  // The files that model.safetensors.index.json names, and no others; without an index the one file
  // model.safetensors. Errors: kBadFile: a file that is missing, a shard that the index does not know, a tensor that
  // is not where the index says, pickle files alone; and as parse_safetensors.
  static Result<SafetensorsSet> open(const std::string& folder);

  std::span<const SafetensorsTensor> tensors() const { return tensors_; }

 private:
  std::vector<MmapFile> files_;
  std::vector<SafetensorsTensor> tensors_;
};

// Test seam of the index: the file of each tensor. Errors: kBadFile: no weight_map, a tensor that it names twice, a
// file name that leads out of the folder.
Result<std::vector<std::pair<std::string, std::string>>> parse_safetensors_index(std::string_view text,
                                                                                 const std::string& name);

}  // namespace kvasir::io
