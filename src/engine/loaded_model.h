// Everything that comes out of a model file, ready to run.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "engine/memory_plan.h"
#include "engine/text_loader.h"
#include "io/weight_source.h"
#include "kvasir/engine.h"
#include "model/model.h"
#include "runtime/kv_storage.h"

namespace kvasir {

// Owns the file, the workers, the weights and the KV memory, in the order they depend on each other.
struct LoadedModel {
  std::unique_ptr<io::WeightSource> source;
  std::unique_ptr<text::Tokenizer> tokenizer;         // null: the file has none
  std::unique_ptr<text::ChatTemplate> chat_template;  // null: neither the file nor the configuration has one
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<runtime::KvStorage> kv_storage;
  MemoryPlan memory;
  ModelInfo info;
  std::int32_t max_logit_rows = 0;
};

// Errors: kBadFile (the model), kMachine (memory), kUsage (configuration).
Result<LoadedModel> load_model_file(const EngineConfig& config, const LoadProgress& progress);

}  // namespace kvasir
