// Which files of a repository make up a model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "store/hub/hub_name.h"

namespace kvasir::store {

struct HubSelection {
  // The file to open, the first of a split set; empty when the model is the folder itself.
  std::string model_path;
  // In the order in which they are fetched. "config.json", which makes a folder a model, is the last.
  std::vector<std::string> paths;
  // Lists the safetensors files of the model, which add_shards() adds once it is here; empty without one.
  std::string index_path;
};

// `paths`: all files of the repository.
// With a file in the name: that one, or the one GGUF file of that quantization, each with its split set. Else
// the GGUF file of quantization Q4_K_M, or the only one. Else the safetensors files with what belongs to
// them. Pickle files (.bin, .pt) are never taken.
// Errors: kNotFound, with the nearest names or the list to choose from; kBadFile when nothing there can be
// used.
Result<HubSelection> select_files(const HubName& name, const std::vector<std::string>& paths);

// Adds the files that the index (model.safetensors.index.json) names. Error: kBadFile for text that is no
// such index, or that names a file that is not in `paths`.
Status add_shards(const HubName& name, std::string_view index_json, const std::vector<std::string>& paths,
                  HubSelection& selection);

// The files that an index names, sorted. Error: kBadFile.
Result<std::vector<std::string>> shards_of_index(const HubName& name, std::string_view index_json);

// The GGUF models among the paths: single files and the first files of split sets.
std::vector<std::string> gguf_models(const std::vector<std::string>& paths);

// All files of the set that a GGUF file is part of, in order: "x-00001-of-00003.gguf" and so on; else the
// file alone.
std::vector<std::string> split_set_of(const std::string& path);

}  // namespace kvasir::store
