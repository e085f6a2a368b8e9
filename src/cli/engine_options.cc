#include "cli/engine_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "cli/draft_options.h"
#include "cli/input_file.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "engine/kv_params.h"
#include "io/kv_calibration.h"
#include "store/model_store.h"
#include "text/chat_template.h"

namespace kvasir::cli {
namespace {

constexpr std::int32_t kMaxStepTokens = 1 << 16;  // the engine's limits
constexpr std::size_t kMaxPublicPrefixBytes = 1 << 20;
constexpr std::int64_t kMaxCacheTokens = std::int64_t{1} << 32;

// Parsed here too: the engine would not know the file's name.
Result<std::string> read_chat_template(const std::string& path) {
  KVASIR_TRY(std::string source, read_input_file(path, text::ChatTemplate::kMaxSourceBytes));
  if (const auto parsed = text::ChatTemplate::parse(source); !parsed) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: {}", printable_line(path), parsed.error().message));
  }
  return source;
}

WaitingPolicy waiting_policy_of(std::string_view name) {
  const auto found = std::ranges::find(kWaitingPolicyNames, name);
  return static_cast<WaitingPolicy>(found - kWaitingPolicyNames.begin());
}

}  // namespace

void add_context_option(CLI::App& verb, EngineOptions& options, const std::string& names) {
  verb.add_option(names, options.ctx_tokens,
                  "Context length: tokens of prompt and answer together (0: what the model was trained for, as far as memory allows)")
      ->transform(whole_number(0, kMaxLengthTokens))
      ->capture_default_str();
}

void add_kv_type_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--kv-type", options.kv_type, "Data type of the KV cache; q12: 12 bits a value")
      ->check(one_of({"q12", "f16", "f32"}))
      ->capture_default_str();
}

void add_kv_policy_options(CLI::App& verb, KvParams& kv) {
  verb.add_option("--kv-policy", kv.policy, "How the KV cache is compressed: quantised by attention (ladder), to one format (k8v4), or with tokens "
                  "dropped (snapkv)")
      ->check(one_of(kv_policy_names()))
      ->capture_default_str();
  verb.add_option_function<std::string>(
          "--kv-budget",
          [&kv](const std::string& text) {
            const Status status = set_kv_budget(text, kv);
            if (!status) throw CLI::ValidationError("--kv-budget", status.error().message);
          },
          "Memory for each request's KV cache: a share of its size in f16 (0.3, 30%), or bytes (64MiB)")
      ->default_str("1");
  verb.add_option_function<std::string>(
          "--kv-quality",
          [&kv](const std::string& name) {
            if (const Status status = set_kv_quality(name, kv); !status) {
              throw CLI::ValidationError("--kv-quality", status.error().message);
            }
          },
          "Loss that is accepted for the budget: exact (none: the policy is off), gate (the ladder drops only "
          "tokens with almost no attention; other policies drop by their methods), best_effort (the budget "
          "always holds)")
      ->check(one_of({"exact", "gate", "best_effort"}))
      ->default_str("gate");
  verb.add_option("--kv-max-lost", kv.max_lost_share,
                  "Most of a head's attention that later tokens may be expected to pay to what is dropped, 0 to 1 (default: by "
                  "--kv-quality, 0.02 for gate)")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0));
}

void add_kv_forecast_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--kv-forecast", options.kv_forecast,
                  "File of `kvasir calibrate-kv --forecast` for this model, whose forecast --kv-policy ladder-learned uses (default: the "
                  "file beside the model)");
}

void add_kv_log_option(CLI::App& verb, std::string& path) {
  verb.add_option("--kv-log", path,
                  "Log each action of the KV policy and its reason to an SQLite file (`kvasir kv explain` reads it)");
}

void add_weight_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--device", options.device,
                  "Where the model runs: cpu, cuda:0 where the program has CUDA, or guarded (the processor with memory that only "
                  "its ops can touch, for tests)")
      ->default_str("cpu");
  verb.add_option("--gpu-memory", options.gpu_memory,
                  "Memory of a GPU for weights, KV and workspace together: a share of all (0.9, 90%) or a size (20GiB)")
      ->capture_default_str();
  verb.add_option("--gpu-layers,--n-gpu-layers", options.gpu_layers,
                  "Layers whose matrices a GPU keeps, from the first on (auto: as many as fit, all, or a number; -ngl); the CPU "
                  "multiplies with the others'")
      ->capture_default_str();
  verb.add_flag(
      "--fast", options.fast,
      "Requantise the weights to int8 (W8A8, one scale per 256 inputs): faster prompts, more memory, slightly "
      "other logits");
  verb.add_option("--quantize", options.quantize,
                  "Quantise float weights (F32, F16, BF16) while loading; the embedding stays, the head becomes q8_0")
      ->check(one_of({"q8_0", "q4_0", "q4_k", "mxfp4", "bf16"}));
  verb.add_option("--add-special-tokens", options.add_special_tokens,
                  "Whether BOS and EOS stand around texts, for a GGUF file that does not say")
      ->check(one_of({"yes", "no"}));
  CLI::Option* packed_cache =
      verb.add_option("--packed-cache", options.packed_cache,
                      "Folder for a copy of the weights as the kernels read them, which later starts map (default: the "
                      "store's, for models in it)");
  verb.add_flag("--no-packed-cache", options.no_packed_cache, "Neither read nor write such a copy")->excludes(packed_cache);
}

void add_adapter_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--lora", options.adapters,
                  "An adapter: PATH or NAME=PATH of a PEFT folder or a GGUF file; again for more")
      ->take_all()
      ->expected(1);
  verb.add_option("--lora-type", options.adapter_type, "Numbers of adapters: f16, or int8, which takes half of the bytes")
      ->check(one_of({"f16", "int8"}))
      ->capture_default_str();
  verb.add_option("--lora-scale", options.adapter_scales, "A factor on the adapters' changes: S, or NAME=S for one")
      ->take_all()
      ->expected(1);
}

void add_chat_template_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--chat-template", options.chat_template_file,
                  "Jinja chat template file to use instead of the model's own");
}

void add_step_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--max-num-batched-tokens", options.max_num_batched_tokens,
                  "Most tokens in one batch (forward pass) (0: 512, and up to 2048 for a mixture of experts)")
      ->transform(whole_number(0, kMaxStepTokens));
}

void add_prefill_only_option(CLI::App& verb, EngineOptions& options) {
  verb.add_flag("--no-prefill-only", options.no_prefill_only,
                "Keep the KV cache of all layers also for prompts that are only scored: more memory, the same "
                "results");
}

void add_batching_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--max-num-seqs", options.max_num_seqs, "Most sequences in one batch")
      ->transform(whole_number(1, 4096))
      ->capture_default_str();
  add_step_option(verb, options);
  verb.add_option("--chunk", options.chunk_tokens, "Chunked prefill: most tokens of one prompt in one batch (0: a whole batch)")
      ->transform(whole_number(0, kMaxStepTokens))
      ->capture_default_str();
  verb.add_option(
          "--max-step-ms", options.max_step_ms,
          "Longest batch with prefill while other sequences are decoding, in milliseconds (0: no limit)")
      ->transform(whole_number(0, 60'000))
      ->capture_default_str();
  verb.add_option(
          "--kv-cache-tokens", options.kv_cache_tokens,
          "Size of the KV cache in tokens, uncompressed (0: for --max-num-seqs full contexts, as far as memory allows)")
      ->transform(whole_number(std::int64_t{0}, kMaxCacheTokens));
  verb.add_flag("--no-prefix-cache", options.no_prefix_cache, "Turn prefix caching off: every prompt is computed from its start");
  verb.add_option(
      "--public-prefix", options.public_prefix_files,
      "File with a prompt prefix or system message whose KV cache all API keys share");
  add_prefill_only_option(verb, options);
}

void add_queue_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option(
          "--waiting-policy", options.waiting_policy,
          "Order of waiting requests: first come, first served (fifo), by the field `priority` (priority), or by "
          "priority, then fairly between API keys, then by benefit per byte of KV (slo-value)")
      ->check(one_of(std::vector<std::string>(kWaitingPolicyNames.begin(), kWaitingPolicyNames.end())))
      ->capture_default_str();
  verb.add_option("--ageing-ms", options.ageing_ms,
                  "Waiting time, in milliseconds, after which a request's priority rises by one, and again (0: never)")
      ->transform(whole_number(0, 3'600'000))
      ->capture_default_str();
  verb.add_option(
          "--ttft-target-ms", options.ttft_target_ms,
          "Target for the time to first token: a request that would miss it because of others is refused at once "
          "(503); thirty times as long above priority 0 (0: no target)")
      ->transform(whole_number(0, 3'600'000))
      ->capture_default_str();
  verb.add_option("--max-queue", options.max_queued_requests,
                  "Most waiting requests; a list of prompts counts one each. Beyond it a request is refused (503), "
                  "unless its API key has less than an equal share of the queue. Half as many may wait above "
                  "priority 0")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  verb.add_option("--max-queue-kv", options.max_queued_kv_caches,
                  "Most waiting prompt tokens that are not cached, in multiples of the KV cache's size, by the same "
                  "rules; an API key with nothing waiting may send a prompt of any length (0: no limit)")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb.add_option("--queue-timeout", options.queue_timeout_seconds,
                  "Seconds after which a request that has not started ends with 503, or with an error event in a "
                  "stream that has begun (0: it waits)")
      ->transform(whole_number(0, 86'400))
      ->capture_default_str();
}

namespace {

// "NAME=REST"; without a name it is empty.
std::pair<std::string, std::string> named(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::size_t slash = text.find('/');
  if (equals == text.npos || slash < equals) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Status scale_adapters(const std::vector<std::string>& scales, std::vector<AdapterConfig>& adapters) {
  for (const std::string& text : scales) {
    const auto [name, number] = named(text);
    float scale = 0.0f;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), scale);
    if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(scale)) {
      return make_error(ErrorKind::kUsage, fmt::format("--lora-scale {}: it is no number", printable_line(text)), "lora-scale");
    }
    bool is_known = name.empty();
    for (AdapterConfig& adapter : adapters) {
      if (!name.empty() && adapter.name != name) continue;
      adapter.scale = scale;
      is_known = true;
    }
    if (is_known) continue;
    return make_error(ErrorKind::kUsage, fmt::format("--lora-scale {}: no adapter is called so", printable_line(text)), "lora-scale");
  }
  return {};
}

Result<std::vector<AdapterConfig>> adapters_of(const EngineOptions& options) {
  std::vector<AdapterConfig> adapters;
  for (const std::string& text : options.adapters) {
    auto [name, path] = named(text);
    if (name.empty()) name = std::filesystem::path(path).lexically_normal().stem().string();
    if (name.empty() || path.empty()) {
      return make_error(ErrorKind::kUsage, fmt::format("--lora {}: it must be PATH or NAME=PATH", printable_line(text)), "lora");
    }
    adapters.push_back({.name = name, .path = path});
  }
  KVASIR_CHECKED(scale_adapters(options.adapter_scales, adapters));
  return adapters;
}

// "0.9" and "90%" are shares, all else is a size.
Status set_gpu_memory(std::string_view text, EngineConfig& config) {
  const bool is_percent = text.ends_with('%');
  const std::string number(is_percent ? text.substr(0, text.size() - 1) : text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  const double share = is_percent ? value / 100.0 : value;
  const bool is_share = is_percent || share <= 1.0 || text.find('.') != text.npos;
  if (is_number && is_share) {
    if (share > 0.0 && share <= 1.0) {
      config.gpu_memory_share = share;
      return {};
    }
    return make_error(ErrorKind::kUsage,
                      fmt::format("--gpu-memory: a share is above 0 and at most 1, not {}", printable_line(text)), "gpu-memory");
  }
  const auto bytes = parse_bytes(text);
  if (!bytes) return make_error(ErrorKind::kUsage, "--gpu-memory: " + bytes.error().message, "gpu-memory");
  config.gpu_memory_bytes = *bytes;
  return {};
}

Status set_gpu_layers(std::string_view text, EngineConfig& config) {
  constexpr std::int32_t kAllLayers = 1 << 20;
  if (text == "auto") return {};
  if (text == "all") {
    config.gpu_layers = kAllLayers;
    return {};
  }
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > kAllLayers) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("--gpu-layers: auto, all or a number from 0 to {}, not {}", kAllLayers, printable_line(text)),
                      "gpu-layers");
  }
  config.gpu_layers = number;
  return {};
}

}  // namespace

Result<EngineConfig> make_engine_config(const EngineOptions& options, const GlobalOptions& globals) {
  EngineConfig config;
  config.num_threads = globals.threads;
  config.isa = globals.isa;
  if (const Status device = check_device(options.device); !device) {
    return make_error(device.error().kind, "--" + device.error().message, "device");
  }
  config.device = options.device;
  KVASIR_CHECKED(set_gpu_memory(options.gpu_memory, config));
  KVASIR_CHECKED(set_gpu_layers(options.gpu_layers, config));
  KVASIR_CHECKED(set_drafters(options, config));
  if (!globals.memory.empty()) {
    auto bytes = parse_bytes(globals.memory);
    if (!bytes) return make_error(ErrorKind::kUsage, "--memory: " + bytes.error().message, "memory");
    config.memory_bytes = *bytes;
  }
  config.max_model_len_tokens = options.ctx_tokens;
  config.kv_cache_type = *kv_cache_type_named(options.kv_type);
  config.kv_forecast_path = options.kv_forecast;
  if (!options.kv_forecast.empty()) KVASIR_CHECKED(io::read_kv_forecast(options.kv_forecast));  // before the model is looked for
  KVASIR_TRY(config.adapters, adapters_of(options));
  config.adapter_type = options.adapter_type == "int8" ? AdapterType::kInt8 : AdapterType::kF16;
  config.fast = options.fast;
  config.quantize = options.quantize;
  if (!options.add_special_tokens.empty()) config.add_special_tokens = options.add_special_tokens == "yes";
  if (options.no_packed_cache) {
    config.packed_cache_directory = "";
  } else if (!options.packed_cache.empty()) {
    config.packed_cache_directory = options.packed_cache;
  }
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = options.max_num_batched_tokens;
  config.max_chunk_tokens = options.chunk_tokens;
  config.max_step_ms = options.max_step_ms;
  config.waiting_policy = waiting_policy_of(options.waiting_policy);
  config.ageing_ms = options.ageing_ms;
  config.ttft_target_ms = options.ttft_target_ms;
  config.max_queued_requests = options.max_queued_requests;
  config.max_queued_kv_caches = options.max_queued_kv_caches;
  config.queue_timeout_ms = 1000 * options.queue_timeout_seconds;
  config.kv_cache_tokens = options.kv_cache_tokens;
  config.prefix_cache = !options.no_prefix_cache;
  for (const std::string& path : options.public_prefix_files) {
    KVASIR_TRY(std::string text, read_input_file(path, kMaxPublicPrefixBytes));
    config.public_prefixes.push_back(without_final_newline(std::move(text)));
  }
  config.prefill_only = !options.no_prefill_only;
  if (!options.chat_template_file.empty()) {
    KVASIR_TRY(config.chat_template, read_chat_template(options.chat_template_file));
  }
  return config;
}

}  // namespace kvasir::cli
