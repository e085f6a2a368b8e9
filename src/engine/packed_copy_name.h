// Which packed copy belongs to a model under a configuration.
#pragma once

#include <string>
#include <string_view>

#include "io/packed_copy.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"

namespace kvasir {

// Without a directory in the configuration the copy is off. `isa`: of the kernels, by name. Errors: as
// io::model_fingerprint.
Result<io::PackedCopyName> packed_copy_name(const EngineConfig& config, std::string_view isa);

}  // namespace kvasir
