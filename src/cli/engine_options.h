// Flags that shape the engine, the same for each verb that loads a model.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// The longest text whose length a flag may give; far above any model's limit.
inline constexpr std::int32_t kMaxLengthTokens = 1 << 24;

struct EngineOptions {
  std::int32_t ctx_tokens = 0;  // 0: what the model was trained for, as far as memory allows
  std::string kv_type = "q12";
  bool fast = false;
  std::string device;            // empty: the processor
  std::string gpu_memory = "0.9";  // a share of a GPU's memory, or a size
  std::string gpu_layers = "auto";  // or "all", or a number
  std::string speculate = "off";  // "auto", or drafters as draft_options.h has them, with commas
  std::int32_t max_draft_tokens = EngineConfig{}.max_draft_tokens;
  std::string draft_heads;        // a path; empty: the file beside the model, where there is one
  std::string draft_model;        // a name or a path; empty: none
  std::string draft_rule = "match";  // "residual"
  std::vector<std::string> adapters;        // [NAME=]PATH
  std::vector<std::string> adapter_scales;  // [NAME=]S
  std::string adapter_type = "f16";
  std::string quantize;  // empty: weights stay as they are
  std::string packed_cache;      // folder of packed copies; empty: the store's, for models in it
  bool no_packed_cache = false;
  std::int32_t max_num_seqs = 16;
  std::int32_t max_num_batched_tokens = 0;  // 0: as suits the model
  std::int32_t chunk_tokens = 0;
  std::int32_t max_step_ms = 0;
  std::string waiting_policy = "priority";
  std::int32_t ageing_ms = 0;
  std::int32_t ttft_target_ms = 0;
  std::int32_t max_queued_requests = 256;
  double max_queued_kv_caches = 0.0;
  std::int32_t queue_timeout_seconds = 0;
  std::int64_t kv_cache_tokens = 0;  // 0: as the memory allows
  bool no_prefix_cache = false;
  std::vector<std::string> public_prefix_files;
  bool no_prefill_only = false;
  std::string kv_forecast;         // a calibration file whose forecast counts; empty: the one beside the model
  std::string kv_log;              // file that is told what KV policies do; empty: none
  std::string chat_template_file;  // empty: the model's own template
  std::string add_special_tokens;  // "yes", "no"; empty: as the model's file says
};

// The flag that bounds prompt and answer together, under the verb's own names, e.g. "--ctx".
void add_context_option(CLI::App& verb, EngineOptions& options, const std::string& names);
void add_kv_type_option(CLI::App& verb, EngineOptions& options);
// --kv-policy, --kv-budget, --kv-quality and --kv-max-lost, into `kv` as they are parsed.
void add_kv_policy_options(CLI::App& verb, KvParams& kv);
void add_kv_forecast_option(CLI::App& verb, EngineOptions& options);
// Into `path`: EngineOptions::kv_log or a verb's own.
void add_kv_log_option(CLI::App& verb, std::string& path);
// --device, --fast, --quantize, --add-special-tokens and --packed-cache: where the model runs, how its file is read.
void add_weight_options(CLI::App& verb, EngineOptions& options);
// --lora and --lora-scale.
void add_adapter_options(CLI::App& verb, EngineOptions& options);
void add_chat_template_option(CLI::App& verb, EngineOptions& options);
void add_step_option(CLI::App& verb, EngineOptions& options);
void add_prefill_only_option(CLI::App& verb, EngineOptions& options);
// How requests share the engine's steps, add_step_option and add_prefill_only_option included.
void add_batching_options(CLI::App& verb, EngineOptions& options);

// Who is next, and who is refused, where more come than can be served.
void add_queue_options(CLI::App& verb, EngineOptions& options);

// All but the model's path. Errors: kUsage (a size that does not parse), kBadFile (the template's file
// cannot be read or is no template).
Result<EngineConfig> make_engine_config(const EngineOptions& options, const GlobalOptions& globals);

}  // namespace kvasir::cli
