#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/registry.h"
#include "base/address_space.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "base/units.h"
#include "engine/batched_tokens.h"
#include "engine/encoder_config.h"
#include "engine/gpu_layers.h"
#include "engine/draft_heads.h"
#include "engine/key_components.h"
#include "engine/kv_calibration.h"
#include "engine/kv_params.h"
#include "engine/model_check.h"
#include "engine/model_info.h"
#include "engine/packed_copy_name.h"
#include "engine/public_text.h"
#include "engine/sampling_metadata.h"
#include "engine/vocab_metadata.h"
#include "kv/cells/key_bases.h"

namespace kvasir {
namespace {

// The flag wins over the environment.
std::string chosen_device(const EngineConfig& config) {
  const char* forced = std::getenv("KVASIR_DEVICE");
  return config.device.empty() && forced != nullptr ? forced : config.device;
}

std::string chosen_isa(const EngineConfig& config) {
  const char* forced = std::getenv("KVASIR_ISA");
  return config.isa.empty() && forced != nullptr ? forced : config.isa;
}

Status check_machine_has(std::int64_t memory_bytes) {
  const std::int64_t machine_bytes = describe_machine().total_memory_bytes;
  if (memory_bytes <= machine_bytes) return {};
  return make_error(ErrorKind::kMachine,
                    fmt::format("memory: {} is more than the {} of this machine", format_bytes(memory_bytes),
                                format_bytes(machine_bytes)),
                    "memory");
}

Status validate_limits(const EngineConfig& config) {
  const struct {
    const char* name;
    std::int64_t value, min, max;
  } limits[] = {
      {"threads", config.num_threads, 0, 1024},
      {"max_num_seqs", config.max_num_seqs, 1, 4096},
      {"max_num_batched_tokens", config.max_num_batched_tokens, 0, 1 << 16},
      {"ctx", config.max_model_len_tokens, 0, 1 << 28},
      {"kv_cache_tokens", config.kv_cache_tokens, 0, 1ll << 32},
      {"gpu-memory", config.gpu_memory_bytes, 0, 1ll << 50},
      {"gpu-layers", config.gpu_layers, GpuLayers::kAsManyAsFit, 1 << 20},
      {"memory", config.memory_bytes, 0, 1ll << 50},
      {"max_queued_requests", config.max_queued_requests, 1, 1 << 20},
  };
  for (const auto& [name, value, min, max] : limits) {
    if (value < min || value > max) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("{}: must be between {} and {}, is {}", name, min, max, value), name);
    }
  }
  if (config.max_num_batched_tokens > 0 && config.max_num_batched_tokens < config.max_num_seqs) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_num_batched_tokens: must be at least max_num_seqs {}, is {}",
                                  config.max_num_seqs, config.max_num_batched_tokens),
                      "max_num_batched_tokens");
  }
  return {};
}

// Puts the file's name before a fault of the file.
template <class T>
Result<T> in_file(const EngineConfig& config, Result<T> result) {
  if (!result && result.error().kind == ErrorKind::kBadFile) {
    result.error().message = fmt::format("{}: {}", printable_line(config.model_path), result.error().message);
  }
  return result;
}

kv::KvCacheConfig kv_cache_config(const EngineConfig& config, const model::ModelConfig& model,
                                   const MemoryPlan& plan) {
  kv::KvCacheConfig kv{.new_cells = format_of_new_cells(config.kv_cache_type, model)};
  for (std::size_t i = 0; i < model.layer_groups.size(); ++i) {
    const model::LayerGroup& group = model.layer_groups[i];
    kv.groups.push_back(
        {.num_blocks = plan.num_blocks[i],
         .window_tokens = model.is_encoder ? 0 : group.window,  // nothing is left behind within a step
         .cells_per_block = model.num_kv_layers_of(group) * model.num_kv_heads_of(group),
         .num_kv_heads = model.num_kv_heads_of(group),
         .head_dim = model.head_dim_of(group)});
  }
  return kv;
}

std::vector<std::span<const std::byte>> looked_up_in(const io::WeightSource& source) {
  std::vector<std::span<const std::byte>> tables;
  for (const char* name : {"token_embd.weight", "per_layer_token_embd.weight"}) {
    const TensorView* table = source.find(name);
    if (table != nullptr && table->data != nullptr) {
      tables.emplace_back(table->data, static_cast<std::size_t>(table->num_bytes()));
    }
  }
  return tables;
}

// Bytes that the process will touch after loading: rows of embeddings are read where they lie in the file, in
// time all of them.
std::int64_t later_bytes(const EngineConfig& config, const io::WeightSource& source) {
  std::int64_t bytes = 0;
  for (const std::span<const std::byte> table : looked_up_in(source)) bytes += std::ssize(table);
  return bytes + draft_heads_bytes(config);
}

// The program itself, without the weights.
std::int64_t process_bytes_of(const EngineConfig& config, std::int64_t weight_bytes) {
  return config.process_bytes > 0 ? config.process_bytes : std::max<std::int64_t>(0, rss_bytes() - weight_bytes);
}

// The table of embeddings stays mapped, and so do pages of the file around what was read: two bytes a number of the table.
std::int64_t mapped_bytes(const model::ModelConfig& model) { return 2ll * model.vocab_size * model.hidden_size; }

int threads_of(const EngineConfig& config) {
  return config.num_threads > 0 ? config.num_threads : usable_physical_cores();
}

Status load_text(const EngineConfig& config, bool is_encoder, LoadedModel& loaded) {
  if (is_encoder && !config.add_special_tokens) {
    if (Status status = check_encoder_says_special_tokens(loaded.opened.source().metadata()); !status) {
      return in_file(config, std::move(status));
    }
  }
  KVASIR_TRY(loaded.tokenizer, in_file(config, loaded.opened.load_tokenizer(config.add_special_tokens)));
  KVASIR_TRY(loaded.chat_template, in_file(config, loaded.opened.load_chat_template(config.chat_template)));
  return {};
}

// Error (kUnmet): the device does not run heads in such groups.
Status check_groups(const EngineConfig& config, const model::ModelConfig& model) {
  if (!backend::is_gpu(chosen_device(config))) return {};
  for (const model::LayerGroup& group : model.layer_groups) {
    const std::int32_t group_size = model.num_heads / model.num_kv_heads_of(group);
    if (group_size <= backend::kMaxGpuGroupSize) continue;
    return make_error(ErrorKind::kUnmet,
                      fmt::format("device: {} runs at most {} query heads to a KV head, the model has {}",
                                  chosen_device(config), backend::kMaxGpuGroupSize, group_size),
                      "device");
  }
  return {};
}

// Opens the packed copy, or makes ready to write one.
Status prepare_packed_copy(const EngineConfig& config, LoadedModel& loaded) {
  if (backend::is_gpu(chosen_device(config))) return {};  // which packs the head in a way of its own
  std::string isa = chosen_isa(config);
  if (isa.empty()) isa = backend::host_isas().front();
  KVASIR_TRY(io::PackedCopyName name, packed_copy_name(config, isa));
  loaded.packed_copy = io::PackedCopy::open(std::move(name));
  if (!loaded.packed_copy.is_writable()) return {};
  KVASIR_TRY(const model::WeightFootprint weights,
             in_file(config, model::measure_weights(loaded.opened.source(), *loaded.backend)));
  loaded.packed_copy.begin_writing(weights.packed_bytes);
  return {};
}

Status open_device(const EngineConfig& config, LoadedModel& loaded) {
  if (loaded.pool == nullptr) loaded.pool = std::make_shared<ThreadPool>(threads_of(config));
  KVASIR_TRY(loaded.backend,
             backend::make_backend(chosen_device(config), chosen_isa(config), *loaded.pool,
                                   config.fast ? backend::Precision::kFast : backend::Precision::kExact,
                                   {.num_bytes = config.gpu_memory_bytes, .share = config.gpu_memory_share}));
  return {};
}

// The plan of the memory that weights and KV take, which may be the device's own. `host_bytes`: of the process besides,
// where it is the host's; `to_come_bytes` as plan_memory() has them.
Result<MemoryPlan> plan_for(const EngineConfig& config, const model::ModelConfig& model, const backend::Backend& backend,
                            std::int64_t weight_bytes, std::int64_t host_bytes, std::int64_t available_bytes,
                            std::int64_t to_come_bytes = 0) {
  const std::optional<std::int64_t> device_bytes = backend.memory_bytes();
  if (!device_bytes) return plan_memory(config, model, weight_bytes, host_bytes, available_bytes, to_come_bytes);
  EngineConfig of_device = config;
  of_device.device = chosen_device(config);
  of_device.memory_bytes = *device_bytes;
  of_device.reserved_bytes = 0;
  return plan_memory(of_device, model, weight_bytes, backend.scratch_bytes(), *device_bytes);
}

// Planning before loading leaves so much for what it does not know yet: a part of the device's memory, and what
// Backend::scratch_bytes will count, four of the widest rows and those of experts, twice.
constexpr std::int64_t kUnknownPart = 32, kScratchRows = 4;
std::int64_t unknown_bytes(const EngineConfig& config, const model::ModelConfig& model, std::int64_t device_bytes) {
  const std::int64_t widest = std::max({model.hidden_size, model.max_q_size(), model.max_kv_size(), model.intermediate_size});
  const std::int64_t logits = model.is_encoder ? 0 : std::int64_t{max_logit_rows(model)} * model.vocab_size;
  const std::int64_t expert_floats = std::int64_t{config.max_num_batched_tokens} * model.moe.rule.num_used *
                                     (3ll * model.hidden_size + 4ll * model.moe.intermediate_size);
  return device_bytes / kUnknownPart +
         4 * (kScratchRows * std::max(widest * config.max_num_batched_tokens, logits) + 2 * expert_floats);
}

constexpr std::int32_t kUsualModelLenTokens = 4096;

// Tells the device which layers it keeps, and returns them. Error (kMachine): the host has no room for the others.
Result<GpuLayers> share_layers(const EngineConfig& config, const model::ModelConfig& model, const io::WeightSource& source,
                               std::int64_t available_bytes, backend::Backend& backend) {
  const std::optional<std::int64_t> device_bytes = backend.memory_bytes();
  const std::int32_t wanted = device_bytes ? config.gpu_layers : model.num_layers;
  const auto fits = [&](std::int64_t weight_bytes) {
    EngineConfig usual = config;
    if (usual.max_model_len_tokens == 0) {
      usual.max_model_len_tokens = std::min(model.context_length_tokens, kUsualModelLenTokens);
    }
    const std::int64_t with_margin = weight_bytes + unknown_bytes(config, model, *device_bytes);
    return plan_for(usual, model, backend, with_margin, 0, available_bytes).has_value();
  };
  const GpuLayers layers = split_layers(source, model.num_layers, wanted, fits);
  if (device_bytes) backend.keep_layers(layers.num_kept);
  const std::int64_t host_bytes = config.memory_bytes > 0 ? std::min(config.memory_bytes, available_bytes) : available_bytes;
  if (layers.host_bytes <= host_bytes) return layers;
  return make_error(ErrorKind::kMachine,
                    fmt::format("gpu-layers: {} layers that do not run on the GPU take {}, the host has {}",
                                model.num_layers - layers.num_kept, format_bytes(layers.host_bytes), format_bytes(host_bytes)),
                    "gpu-layers");
}

Status load_weights(const EngineConfig& config, const model::ModelConfig& model,
                    const model::WeightProgress& progress, LoadedModel& loaded) {
  if (!config.adapters.empty() || config.adapter_memory_bytes > 0) loaded.backend->expect_adapters(config.adapter_type);
  KVASIR_CHECKED(prepare_packed_copy(config, loaded));
  loaded.max_logit_rows = max_logit_rows(model);
  const model::WorkspaceLimits limits{.max_rows = config.max_num_batched_tokens,
                                      .max_logit_rows = loaded.max_logit_rows,
                                      .context_tokens = config.max_model_len_tokens};
  KVASIR_TRY(loaded.model,
             in_file(config, model::load_model(loaded.opened.source(), *loaded.backend, limits, progress,
                                               &loaded.packed_copy)));
  if (const std::string error = loaded.backend->error(); !error.empty()) {
    return make_error(ErrorKind::kMachine, fmt::format("device: {}: {}", chosen_device(config), error), "device");
  }
  loaded.packed_copy.finish();
  return {};
}

Status load_adapters(const EngineConfig& config, LoadedModel& loaded) {
  loaded.adapters = std::make_unique<AdapterSet>(*loaded.model, *loaded.backend, config.adapter_type);
  for (const AdapterConfig& adapter : config.adapters) {
    const auto is_same = [&](const AdapterConfig& other) { return other.name == adapter.name; };
    if (std::ranges::count_if(config.adapters, is_same) > 1) {
      return make_error(ErrorKind::kUsage, fmt::format("lora: two adapters are called \"{}\"", printable(adapter.name)), "lora");
    }
    KVASIR_CHECKED(loaded.adapters->load(adapter, /*may_leave=*/false));
  }
  if (config.adapter_memory_bytes == 0) return {};
  if (const std::int64_t bytes = loaded.adapters->num_bytes(); bytes > config.adapter_memory_bytes) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("adapter-memory: the adapters take {}, it is {}", format_bytes(bytes),
                                  format_bytes(config.adapter_memory_bytes)),
                      "adapter-memory");
  }
  loaded.adapters->bound(config.adapter_memory_bytes);
  return {};
}

// Takes what loaded.memory has planned: cells, rows for layer-by-layer prompts.
Status reserve_memory(const model::ModelConfig& model, LoadedModel& loaded) {
  KVASIR_CHECKED(loaded.kv.validate());
  KVASIR_CHECKED(loaded.backend->check_cells(loaded.kv.new_cells));
  const std::int64_t bytes = loaded.kv.memory_bytes();
  auto memory = loaded.backend->make_cell_memory(bytes);
  if (!memory) {
    const std::optional<std::int64_t> left = free_address_bytes();
    const std::string reason = left ? fmt::format(" of the {} that ulimit -v leaves", format_bytes(*left)) : "";
    return make_error(ErrorKind::kMachine,
                      fmt::format("KV cache: cannot reserve {}{}; a smaller --memory or --ctx would do", format_bytes(bytes),
                                  reason));
  }
  loaded.kv_memory = std::move(*memory);
  if (const std::int32_t rows = loaded.memory.max_prefill_only_tokens; rows > 0) {
    KVASIR_TRY(loaded.hidden, loaded.backend->make_rows(rows, model.hidden_size));
  }
  return {};
}

}  // namespace

Status check_device(const std::string& device) { return backend::check_device(device); }

Result<LoadedModel> load_model_file(const EngineConfig& requested, const LoadProgress& progress,
                                    std::shared_ptr<ThreadPool> pool) {
  const auto say = [&](const char* phase, double fraction) -> Status {
    if (!progress || progress(phase, fraction)) return {};
    return make_error(ErrorKind::kCancelled, "loading was stopped");
  };
  KVASIR_CHECKED(validate_limits(requested));
  KVASIR_CHECKED(check_device(chosen_device(requested)));
  KVASIR_CHECKED(check_machine_has(requested.memory_bytes));
  LoadedModel loaded;
  loaded.pool = std::move(pool);
  KVASIR_CHECKED(say("open", 0.0));
  KVASIR_TRY(loaded.opened, open_model(requested.model_path));
  if (!requested.quantize.empty()) KVASIR_CHECKED(loaded.opened.quantize(requested.quantize, threads_of(requested)));
  const io::WeightSource& source = loaded.opened.source();
  KVASIR_TRY(const model::ModelConfig model, in_file(requested, model::load_config(source)));
  EngineConfig& config = loaded.settings = requested;
  config.max_num_batched_tokens = batched_tokens(requested, model);
  KVASIR_CHECKED(check_groups(config, model));
  if (backend::is_gpu(chosen_device(config)) && config.kv_cache_type == KvCacheType::kQ12) {
    config.kv_cache_type = KvCacheType::kF16;
  }
  if (model.is_encoder) config = encoder_config(std::move(config));

  // Packed weights take about the file's bytes; the plan before loading refuses early, the one after is
  // exact.
  KVASIR_CHECKED(open_device(config, loaded));
  const std::int64_t available_bytes = available_memory_bytes();
  const std::int64_t still_to_come = later_bytes(config, source);
  KVASIR_TRY(const GpuLayers layers, share_layers(config, model, source, available_bytes, *loaded.backend));
  KVASIR_CHECKED(plan_for(config, model, *loaded.backend, layers.device_bytes,
                          process_bytes_of(config, 0) + still_to_come, available_bytes, mapped_bytes(model)));

  KVASIR_CHECKED(say("tokenizer", 0.0));
  KVASIR_CHECKED(load_text(config, model.is_encoder, loaded));
  const auto weight_progress = [&](double fraction) { return say("weights", fraction).has_value(); };
  KVASIR_CHECKED(load_weights(config, model, weight_progress, loaded));
  KVASIR_CHECKED(load_adapters(config, loaded));
  const std::int64_t weight_bytes =
      loaded.model->weight_bytes() - loaded.backend->host_weight_bytes() + std::max(loaded.adapters->num_bytes(), config.adapter_memory_bytes);
  const std::int64_t process_bytes = process_bytes_of(config, weight_bytes) + still_to_come;
  KVASIR_TRY(loaded.memory, plan_for(config, model, *loaded.backend, weight_bytes, process_bytes, available_bytes));
  loaded.kv = kv_cache_config(config, model, loaded.memory);
  if (loaded.backend->memory_bytes()) loaded.kv.max_extra_pages = 0;  // for policies, which do not run there
  if (config.kv_calibration) KVASIR_CHECKED(apply_kv_calibration(config.model_path, config.kv_forecast_path, loaded.kv));
  if (config.kv_key_components && !loaded.backend->memory_bytes()) {
    KVASIR_CHECKED(apply_key_components(config.model_path, *loaded.model, loaded.memory.max_model_len_tokens, loaded.kv));
  }
  KVASIR_TRY(loaded.draft_heads, load_draft_heads(config, model.vocab_size, loaded.tokenizer.get()));
  KVASIR_CHECKED(reserve_memory(model, loaded));
  loaded.info = describe(source, *loaded.model, loaded.kv, loaded.memory.max_model_len_tokens);
  if (const std::string device = chosen_device(config); !device.empty()) loaded.info.device = device;
  loaded.info.has_key_components = loaded.kv.full_group().key_bases != nullptr;
  loaded.info.default_sampling = loaded.opened.generation_defaults().value_or(usual_sampling());
  loaded.info.notices = notices_about(source, loaded.tokenizer.get());
  std::ranges::copy(loaded.packed_copy.notices(), std::back_inserter(loaded.info.notices));
  if (config.gpu_layers > 0 && !loaded.backend->memory_bytes()) {
    loaded.info.notices.emplace_back("gpu-layers: no GPU runs the model, so it changes nothing");
  }
  if (!layers.are_all_kept()) {
    loaded.info.notices.push_back(fmt::format("{} of {} layers run on {}, the matrices of the others ({}) on the CPU",
                                              layers.num_kept, layers.num_layers, loaded.info.device,
                                              format_bytes(loaded.backend->host_weight_bytes())));
  }
  loaded.info.packed_cache = io::name_of(loaded.packed_copy.state());
  KVASIR_TRY(loaded.kv.public_prefixes,
             public_prefixes_of(config.public_prefixes, loaded.tokenizer.get(), loaded.chat_template.get()));
  return loaded;
}

std::vector<std::span<const std::byte>> LoadedModel::looked_up_tables() const {
  return looked_up_in(opened.source());
}

std::vector<backend::KvGroupView> LoadedModel::kv_views(const kv::CellStore& cells) {
  std::vector<backend::KvGroupView> views;
  const model::ModelConfig& config = model->config();
  for (std::size_t i = 0; i < config.layer_groups.size(); ++i) {
    backend::KvGroupView& view = views.emplace_back();
    view.layout = {.format = kv.new_cells,
                   .num_layers = config.num_kv_layers_of(config.layer_groups[i]),
                   .num_kv_heads = config.num_kv_heads_of(config.layer_groups[i]),
                   .head_dim = config.head_dim_of(config.layer_groups[i])};
    view.window = config.layer_groups[i].window;
    if (config.is_encoder) view.ahead = view.window > 0 ? view.window - 1 : backend::KvGroupView::kAllAhead;
    view.directory = cells.directory(static_cast<std::int32_t>(i));
    view.memory = kv_memory.data();
    if (const auto& bases = kv.groups[i].key_bases; bases != nullptr) view.key_bases = bases->data();
  }
  return views;
}

kv::RunRecord LoadedModel::policy_run() const {
  const model::ModelConfig& config = model->config();
  kv::RunRecord run{.model = info.name,
                    .query_heads_per_kv_head = config.num_heads / kv.full_group().num_kv_heads,
                    .head_dim = kv.full_head_dim(),
                    .format_costs = kv.format_costs};
  for (const model::LayerGroup& group : config.layer_groups) {
    run.groups.push_back({.layers = group.layers, .num_kv_heads = config.num_kv_heads_of(group)});
  }
  return run;
}

runtime::PrefillOnlyMemory LoadedModel::prefill_only_memory(const kv::CellStore& cells,
                                                            std::int32_t prefill_only_group) {
  runtime::PrefillOnlyMemory prefill_only{.kv_groups = kv_views(cells), .hidden = hidden};
  for (backend::KvGroupView& view : prefill_only.kv_groups) {
    view.layout.num_layers = 1;
    view.key_bases = nullptr;  // cells of layer blocks are as they were written
    view.directory = cells.directory(prefill_only_group);
    view.directory.versions = nullptr;  // numbers of layer blocks are others
  }
  return prefill_only;
}

}  // namespace kvasir
