// Everything that comes out of a model file, ready to run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "engine/adapter_set.h"
#include "engine/memory_plan.h"
#include "engine/open_model.h"
#include "io/packed_copy.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "model/model.h"
#include "runtime/model_runner.h"
#include "spec/ngram_table.h"

namespace kvasir {

// Owns the file, the workers, the weights and the KV memory, in the order they depend on each other.
struct LoadedModel {
  OpenedModel opened;                          // embeddings are read out of its file while the model runs
  std::unique_ptr<text::Tokenizer> tokenizer;  // null: the file has none
  std::unique_ptr<text::ChatTemplate> chat_template;  // null: neither the file nor the configuration has one
  io::PackedCopy packed_copy;  // the weights may be its bytes
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<AdapterSet> adapters;
  kv::KvCacheConfig kv;     // what the KV cache must be like for this model; the rest as its defaults
  AlignedBuffer kv_memory;  // of its cells. Touched only when a cell is first written
  backend::Rows hidden;  // [memory.max_prefill_only_tokens, hidden_size]. Touched likewise
  MemoryPlan memory;
  ModelInfo info;
  std::int32_t max_logit_rows = 0;
  std::shared_ptr<const spec::NgramTable> draft_heads;  // null: nothing was learned of it beforehand
  EngineConfig settings;  // as they apply to this model

  // Tables whose rows are looked up in the file while the model runs.
  std::vector<std::span<const std::byte>> looked_up_tables() const;
  // How the model reads the cells of a cache that was made of `kv`.
  std::vector<backend::KvGroupView> kv_views(const kv::CellStore& cells);
  // The model as a journal of KV policies records it.
  kv::RunRecord policy_run() const;
  // The memory of sequences that run layer by layer; their layer blocks are those of group
  // `prefill_only_group`.
  runtime::PrefillOnlyMemory prefill_only_memory(const kv::CellStore& cells, std::int32_t prefill_only_group);
};

// `pool`: of another model that never runs at the same time; null: it has one of its own. Errors: kBadFile (the model),
// kMachine (memory), kUsage (configuration).
Result<LoadedModel> load_model_file(const EngineConfig& config, const LoadProgress& progress,
                                    std::shared_ptr<ThreadPool> pool = nullptr);

}  // namespace kvasir
