// The models of `kvasir serve`: their names, what memory each may take, and how it is loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/logger.h"
#include "cli/shadow_options.h"
#include "cli/verb.h"
#include "cli/weights_watch.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "server/api/served_models.h"

namespace kvasir::cli {

struct ModelSetOptions {
  std::vector<std::string> models;        // MODEL arguments; the first answers requests that name none
  std::string model_dir;                  // whose files and folders are models too; empty: none
  std::vector<std::string> served_names;  // "[MODEL=]NAME"
  std::int32_t max_loaded = 0;            // at once; 0: as many as the memory holds
  std::int64_t keep_alive_seconds = 0;    // 0: until another needs the room
  bool takes_any_name = false;
};

// One of them.
struct ModelPlace {
  std::string model;               // as store::resolve_model takes it
  std::string name;                // in answers
  std::vector<std::string> names;  // further ones
  bool is_optional = false;        // found in the folder: one that does not run is left out
  EngineConfig config = {};        // ModelMemory fills it in
  ModelInfo described = {};
};

// The models with their names. Errors: kUsage (no model, a name twice, a MODEL= that is none), kNotFound (the folder).
Result<std::vector<ModelPlace>> list_models(const ModelSetOptions& options);

// File bytes of those that may be loaded at once, the largest ones.
std::int64_t loaded_file_bytes(const std::vector<ModelPlace>& places, std::int32_t max_loaded);

// The name from the command line, or a file's name without folder and ending.
std::string default_name(const std::string& model);

// The model as a server takes it, loaded when it is asked for. Keeps a watch on its file while it is in memory: of one
// that is loaded already it is `watch`. The logger outlives it.
server::api::ServedModel served_on_demand(const ModelPlace& place, const ShadowOptions& shadows, Logger& logger,
                                          std::unique_ptr<WeightsWatch> watch = nullptr);

}  // namespace kvasir::cli
