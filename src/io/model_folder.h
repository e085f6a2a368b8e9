// A model as the hub has it: a folder with config.json, safetensors and a few small files.
#pragma once

#include <memory>
#include <string>

#include "io/external_rows.h"
#include "io/folder_texts.h"
#include "io/hf_config.h"
#include "io/hf_mapping.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::io {

// The folder's weights under GGUF's names and keys, as `mapping` says; the metadata include what `texts` say. `floats`:
// how weights of other engines' types are given where they become floats.
// Without "lm_head" the embedding is the head, whatever the configuration says. Errors: kBadFile, one line that
// names the file and the tensor or key.
Result<std::unique_ptr<WeightSource>> open_folder(const std::string& folder, const HfConfig& config,
                                                  const HfMapping& mapping, const FolderTexts& texts,
                                                  ComputedFloats floats = ComputedFloats::kRounded);

}  // namespace kvasir::io
