// Which architectures Kvasir knows: one line each in registry.cc.
#pragma once

#include <memory>
#include <string_view>

#include "model/model.h"

namespace kvasir::model {

struct Architecture {
  std::string_view name;  // general.architecture in the file
  // Adjusts what read_config() found to the architecture (layer groups, scales).
  Status (*configure)(const io::WeightSource& source, ModelConfig& config);
  Result<std::unique_ptr<Model>> (*load)(ModelConfig config, WeightLoader& loader, backend::Backend& backend,
                                         const WorkspaceLimits& limits);
};

extern const Architecture kLlama;
extern const Architecture kQwen2;
extern const Architecture kQwen3;
extern const Architecture kGemma3;

}  // namespace kvasir::model
