#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "backend/registry.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "base/units.h"
#include "engine/kv_params.h"
#include "engine/public_text.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"

namespace kvasir {
namespace {

// Floats that one logits() call may fill: bounds the workspace for large vocabularies.
constexpr std::int64_t kMaxLogitFloats = 4 << 20;

// The flag wins over the environment.
std::string chosen_isa(const EngineConfig& config) {
  const char* forced = std::getenv("KVASIR_ISA");
  return config.isa.empty() && forced != nullptr ? forced : config.isa;
}

Status validate_limits(const EngineConfig& config) {
  const struct {
    const char* name;
    std::int64_t value, min, max;
  } limits[] = {
      {"threads", config.num_threads, 0, 1024},
      {"max_num_seqs", config.max_num_seqs, 1, 4096},
      {"max_num_batched_tokens", config.max_num_batched_tokens, 1, 1 << 16},
      {"ctx", config.max_model_len_tokens, 0, 1 << 28},
      {"kv_cache_tokens", config.kv_cache_tokens, 0, 1ll << 32},
      {"memory", config.memory_bytes, 0, 1ll << 50},
      {"max_queued_requests", config.max_queued_requests, 1, 1 << 20},
  };
  for (const auto& [name, value, min, max] : limits) {
    if (value < min || value > max) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("{}: must be between {} and {}, is {}", name, min, max, value), name);
    }
  }
  if (config.max_num_batched_tokens < config.max_num_seqs) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_num_batched_tokens: must be at least max_num_seqs {}, is {}",
                                  config.max_num_seqs, config.max_num_batched_tokens),
                      "max_num_batched_tokens");
  }
  return {};
}

// What is wrong in the file, with the file's name before it.
template <class T>
Result<T> in_file(const EngineConfig& config, Result<T> result) {
  if (!result && result.error().kind == ErrorKind::kBadFile) {
    result.error().message = fmt::format("{}: {}", printable_line(config.model_path), result.error().message);
  }
  return result;
}

// The type that holds most of the weights.
std::string main_quantization(const io::WeightSource& source) {
  std::map<std::string, std::int64_t> elements;
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.name.starts_with("blk."))
      elements[std::string(name_of(tensor.dtype))] += tensor.num_elements();
  }
  const auto largest = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  return largest == elements.end() ? "" : largest->first;
}

ModelInfo describe(const LoadedModel& loaded) {
  const model::ModelConfig& config = loaded.model->config();
  ModelInfo info;
  info.name = printable_line(config.name);
  info.architecture = config.architecture;
  info.quantization = main_quantization(*loaded.source);
  for (const TensorView& tensor : loaded.source->tensors()) {
    info.num_parameters += tensor.num_elements();
    if (tensor.name.starts_with("blk.")) info.num_layer_parameters += tensor.num_elements();
  }
  info.weight_bytes = loaded.model->weight_bytes();
  for (std::size_t i = 0; i < config.layer_groups.size(); ++i) {
    const std::int64_t block_bytes =
        loaded.kv.groups[i].cells_per_block * kv::cell_bytes(loaded.kv.new_cells, loaded.kv.head_dim);
    info.kv_groups.push_back({.bytes_per_token = block_bytes / kv::kTokensPerBlock,
                              .window_tokens = config.layer_groups[i].window,
                              .num_layers = static_cast<std::int32_t>(config.layer_groups[i].layers.size()),
                              .num_kv_heads = config.num_kv_heads});
  }
  info.num_layers = config.num_layers;
  info.hidden_size = config.hidden_size;
  info.vocab_size = config.num_tokens;
  info.context_length_tokens = config.context_length_tokens;
  info.max_model_len_tokens = loaded.memory.max_model_len_tokens;
  return info;
}

// What a calibration beside the model's file says; without one formats have their usual costs, and heads no
// weights.
Status calibrate(const std::string& model_path, kv::KvCacheConfig& kv) {
  const std::string path = io::kv_calibration_path(model_path);
  KVASIR_TRY(const auto calibration, io::read_kv_calibration(path));
  if (!calibration) return {};
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  if (!calibration->model.empty() && calibration->model != fingerprint) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: of another model than this file's; kvasir "
                                                       "calibrate-kv writes it anew",
                                                       printable_line(path)));
  }
  for (const auto& [name, cost] : calibration->costs) {
    const auto format = kv::format_named(name);
    if (!format) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}: no KV format is called '{}'; kvasir calibrate-kv writes it anew",
                                    printable_line(path), printable_line(name)));
    }
    kv.format_costs[*format] = static_cast<float>(cost);
  }
  if (calibration->head_weights.empty()) return {};
  std::int32_t num_heads = 0;
  for (const kv::LayerGroup& group : kv.groups) num_heads += group.is_full() ? group.cells_per_block : 0;
  if (std::ssize(calibration->head_weights) != num_heads) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: weights of {} KV heads, the model has {} without a window; kvasir "
                                  "calibrate-kv writes it anew",
                                  printable_line(path), calibration->head_weights.size(), num_heads));
  }
  auto weight = calibration->head_weights.begin();
  for (kv::LayerGroup& group : kv.groups) {
    if (!group.is_full()) continue;
    group.cell_weights.assign(weight, weight + group.cells_per_block);
    weight += group.cells_per_block;
  }
  return {};
}

kv::KvCacheConfig kv_config(const EngineConfig& config, const model::ModelConfig& model,
                            const MemoryPlan& plan) {
  kv::KvCacheConfig kv{
      .cells_per_layer = model.num_kv_heads,
      .head_dim = model.head_dim,
      .new_cells = format_of_new_cells(config.kv_cache_type, model.head_dim)};
  for (std::size_t i = 0; i < model.layer_groups.size(); ++i) {
    const model::LayerGroup& group = model.layer_groups[i];
    kv.groups.push_back(
        {.num_blocks = plan.num_blocks[i],
         .window_tokens = group.window,
         .cells_per_block = static_cast<std::int32_t>(group.layers.size()) * model.num_kv_heads});
  }
  return kv;
}

Status check_disk(const EngineConfig& config, std::int32_t head_dim) {
  constexpr std::int64_t kMaxDiskBytes = std::int64_t{16} << 40;
  const std::int64_t least = kv::CellArena::page_bytes(head_dim);
  const std::int64_t bytes = config.kv_disk_bytes;
  if (bytes == 0 || (bytes >= least && bytes <= kMaxDiskBytes)) return {};
  const bool is_small = bytes < least;
  return make_error(
      ErrorKind::kUsage,
      fmt::format("kv_disk must be at {} {} for this model, got {}", is_small ? "least" : "most",
                  format_bytes(is_small ? least : kMaxDiskBytes), format_bytes(bytes)),
      "kv_disk");
}

Result<AlignedBuffer> reserve_kv_memory(const kv::KvCacheConfig& config) {
  KVASIR_CHECKED(config.validate());
  const std::int64_t bytes = config.memory_bytes();
  auto memory = AlignedBuffer::allocate(bytes);
  if (memory) return memory;
  return make_error(ErrorKind::kMachine, fmt::format("KV cache: cannot reserve {}", format_bytes(bytes)));
}

}  // namespace

Result<LoadedModel> load_model_file(const EngineConfig& config, const LoadProgress& progress) {
  const auto say = [&](const char* phase, double fraction) -> Status {
    if (!progress || progress(phase, fraction)) return {};
    return make_error(ErrorKind::kCancelled, "loading was stopped");
  };
  KVASIR_CHECKED(validate_limits(config));
  LoadedModel loaded;
  KVASIR_CHECKED(say("open", 0.0));
  KVASIR_TRY(loaded.source, io::open_gguf(config.model_path));
  KVASIR_TRY(const model::ModelConfig model_config, in_file(config, model::load_config(*loaded.source)));

  KVASIR_CHECKED(check_disk(config, model_config.head_dim));
  const std::int64_t disk_table_bytes =
      kv::CellArena::table_bytes(config.kv_disk_bytes, model_config.head_dim);
  // Packed weights take about the file's bytes; the plan before loading refuses early, the one after is
  // exact.
  std::int64_t file_bytes = 0;
  for (const TensorView& tensor : loaded.source->tensors()) file_bytes += tensor.num_bytes();
  const std::int64_t available_bytes = available_memory_bytes();
  // Rows of embeddings are read where they lie in the file; in time all of them.
  const TensorView* embedding = loaded.source->find("token_embd.weight");
  const std::int64_t later_bytes = (embedding == nullptr ? 0 : embedding->num_bytes()) + disk_table_bytes;
  KVASIR_CHECKED(plan_memory(config, model_config, file_bytes, rss_bytes() + later_bytes, available_bytes));

  KVASIR_CHECKED(say("tokenizer", 0.0));
  KVASIR_TRY(loaded.tokenizer, in_file(config, load_tokenizer(*loaded.source)));
  KVASIR_TRY(loaded.chat_template, in_file(config, load_chat_template(*loaded.source, config.chat_template)));

  const int num_threads = config.num_threads > 0 ? config.num_threads : usable_physical_cores();
  loaded.pool = std::make_unique<ThreadPool>(num_threads);
  KVASIR_TRY(loaded.backend,
             backend::make_cpu_backend(chosen_isa(config), *loaded.pool,
                                       config.fast ? backend::Precision::kFast : backend::Precision::kExact));
  loaded.max_logit_rows =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(kMaxLogitFloats / model_config.vocab_size, 1, 64));
  const model::WorkspaceLimits limits{.max_rows = config.max_num_batched_tokens,
                                      .max_logit_rows = loaded.max_logit_rows};
  KVASIR_TRY(loaded.model,
             in_file(config, model::load_model(*loaded.source, *loaded.backend, limits, [&](double fraction) {
                       return say("weights", fraction).has_value();
                     })));
  const std::int64_t weight_bytes = loaded.model->weight_bytes();
  const std::int64_t process_bytes = std::max<std::int64_t>(0, rss_bytes() - weight_bytes) + later_bytes;
  KVASIR_TRY(loaded.memory, plan_memory(config, model_config, weight_bytes, process_bytes, available_bytes));
  loaded.kv = kv_config(config, model_config, loaded.memory);
  if (config.kv_calibration) KVASIR_CHECKED(calibrate(config.model_path, loaded.kv));
  KVASIR_TRY(loaded.kv_memory, reserve_kv_memory(loaded.kv));
  if (config.kv_disk_bytes > 0) {
    KVASIR_TRY(loaded.kv_file, runtime::CellFile::create(config.kv_disk_directory,
                                                         {.backend = loaded.backend.get(),
                                                          .cells = loaded.kv_memory.data(),
                                                          .head_dim = loaded.kv.head_dim},
                                                         config.kv_disk_warning));
    loaded.kv.disk = {.file = loaded.kv_file.get(), .bytes = config.kv_disk_bytes};
  }
  if (const std::int32_t rows = loaded.memory.max_prefill_only_tokens; rows > 0) {
    KVASIR_TRY(loaded.hidden, loaded.backend->make_rows(rows, model_config.hidden_size));
  }
  loaded.info = describe(loaded);
  KVASIR_TRY(loaded.kv.public_prefixes,
             public_prefixes_of(config.public_prefixes, loaded.tokenizer.get(), loaded.chat_template.get()));
  return loaded;
}

std::vector<backend::KvGroupView> LoadedModel::kv_views(const kv::CellStore& cells) {
  std::vector<backend::KvGroupView> views;
  const model::ModelConfig& config = model->config();
  for (std::size_t i = 0; i < config.layer_groups.size(); ++i) {
    backend::KvGroupView& view = views.emplace_back();
    view.layout = {.format = kv.new_cells,
                   .num_layers = static_cast<std::int32_t>(config.layer_groups[i].layers.size()),
                   .num_kv_heads = config.num_kv_heads,
                   .head_dim = config.head_dim};
    view.window = config.layer_groups[i].window;
    view.directory = cells.directory(static_cast<std::int32_t>(i));
    view.memory = kv_memory.data();
  }
  return views;
}

kv::RunRecord LoadedModel::policy_run() const {
  const model::ModelConfig& config = model->config();
  kv::RunRecord run{.model = info.name,
                    .query_heads_per_kv_head = config.group_size(),
                    .head_dim = config.head_dim,
                    .format_costs = kv.format_costs};
  for (const model::LayerGroup& group : config.layer_groups) {
    run.groups.push_back({.layers = group.layers, .num_kv_heads = config.num_kv_heads});
  }
  return run;
}

runtime::PrefillOnlyMemory LoadedModel::prefill_only_memory(const kv::CellStore& cells,
                                                            std::int32_t prefill_only_group) {
  runtime::PrefillOnlyMemory prefill_only{.kv_groups = kv_views(cells), .hidden = hidden};
  for (backend::KvGroupView& view : prefill_only.kv_groups) {
    view.layout.num_layers = 1;
    view.directory = cells.directory(prefill_only_group);
  }
  return prefill_only;
}

}  // namespace kvasir
