// A model folder that does not run, as far as it can be described.
#pragma once

#include <memory>
#include <string>

#include "io/folder_texts.h"
#include "io/hf_config.h"
#include "io/hf_mapping.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::io {

// What stands in the files of a folder that open_folder refuses: tensors by their own names, and every reason in
// faults(). `mapping` is null where no architecture reads such folders; `architecture` is then the name in GGUF files.
// `why` is the reason where no other is found. Errors: kBadFile: the files are broken or incomplete.
Result<std::unique_ptr<WeightSource>> describe_folder(const std::string& folder, const HfConfig& config,
                                                      const HfMapping* mapping, std::string_view architecture,
                                                      const FolderTexts& texts, const Error& why);

}  // namespace kvasir::io
