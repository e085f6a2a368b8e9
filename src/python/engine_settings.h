// The settings that LLM(model, ...) takes besides the model.
#pragma once

#include <string_view>
#include <vector>

#include "kvasir/engine.h"
#include "python/field.h"

namespace kvasir::python {

// The model's path is the caller's to fill in. Raises a UsageError.
EngineConfig read_settings(const nb::dict& settings);

std::vector<std::string_view> setting_names();

}  // namespace kvasir::python
