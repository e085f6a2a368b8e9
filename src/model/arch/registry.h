// The architectures that Kvasir knows: a line each in architectures.def.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "model/model.h"

namespace kvasir::model {

struct Architecture {
  std::string_view name;  // general.architecture in the file
  // Adjusts what read_config() found to the architecture (layer groups, scales).
  Status (*configure)(const io::WeightSource& source, ModelConfig& config);
  // load_decoder() of the architecture's class.
  Result<std::unique_ptr<Model>> (*load)(ModelConfig config, WeightLoader& loader, backend::Backend& backend,
                                         const WorkspaceLimits& limits);
  // Keys after "<name>." that known_keys.cc refuses in general, and that this architecture computes.
  std::array<std::string_view, 12> keys = {};
  bool is_encoder = false;  // ModelConfig::is_encoder
};

// The nearest relative of an architecture that is not supported, and what it lacks, behind ": "; empty: none is known.
std::string why_unsupported(std::string_view name);

// Null when there is none of that name.
const Architecture* find_architecture(std::string_view name);

#define KVASIR_ARCHITECTURE(name) extern const Architecture name;
#include "model/arch/architectures.def"
#undef KVASIR_ARCHITECTURE

}  // namespace kvasir::model
