#include "cli/engine_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "cli/input_file.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "engine/kv_params.h"
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
                  "Most tokens of prompt and answer together (0: what the model was trained for)")
      ->transform(whole_number(0, kMaxLengthTokens))
      ->capture_default_str();
}

void add_kv_type_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--kv-type", options.kv_type, "Numbers in the KV cache; q12: 12 bits each")
      ->check(one_of({"q12", "f16", "f32"}))
      ->capture_default_str();
}

void add_kv_policy_options(CLI::App& verb, KvParams& kv) {
  verb.add_option("--kv-policy", kv.policy, "What becomes of keys and values that later tokens have seen")
      ->check(one_of(kv_policy_names()))
      ->capture_default_str();
  verb.add_option_function<std::string>(
          "--kv-budget",
          [&kv](const std::string& text) {
            const Status status = set_kv_budget(text, kv);
            if (!status) throw CLI::ValidationError("--kv-budget", status.error().message);
          },
          "What a policy may keep of a request's keys and values: a share of their bytes in f16 (0.3, 30%), "
          "or "
          "bytes (64MiB)")
      ->default_str("1");
  verb.add_option_function<std::string>(
          "--kv-quality",
          [&kv](const std::string& name) {
            if (const Status status = set_kv_quality(name, kv); !status) {
              throw CLI::ValidationError("--kv-quality", status.error().message);
            }
          },
          "How far a policy may go: exact (it does nothing), gate (a ladder drops only what is hardly looked "
          "at; the "
          "others drop what their methods say), best_effort (the budget holds whatever it costs)")
      ->check(one_of({"exact", "gate", "best_effort"}))
      ->default_str("gate");
}

void add_kv_disk_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option(
      "--kv-disk", options.kv_disk,
      "Keep what a KV policy takes out of memory in a file of at most this size (2GiB): it comes back "
      "when attention asks for it");
  verb.add_option(
      "--kv-disk-dir", options.kv_disk_dir,
      "Where that file is, which has no name and goes with the process (default: the system's folder "
      "for temporary files)");
}

void add_kv_log_option(CLI::App& verb, std::string& path) {
  verb.add_option("--kv-log", path,
                  "Log what KV policies do and why, into an SQLite file (`kvasir kv explain` reads it)");
}

void add_fast_option(CLI::App& verb, EngineOptions& options) {
  verb.add_flag(
      "--fast", options.fast,
      "Weights as bytes with one scale per 256 inputs: faster prompts, more memory, not the file's numbers");
}

void add_chat_template_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--chat-template", options.chat_template_file,
                  "A template file instead of the model's own");
}

void add_step_option(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--max-num-batched-tokens", options.max_num_batched_tokens, "Tokens of one step")
      ->transform(whole_number(1, kMaxStepTokens))
      ->capture_default_str();
}

void add_prefill_only_option(CLI::App& verb, EngineOptions& options) {
  verb.add_flag("--no-prefill-only", options.no_prefill_only,
                "Keep all layers' keys and values also where a prompt is only scored: more memory, the same "
                "numbers");
}

void add_batching_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--max-num-seqs", options.max_num_seqs, "Sequences that run at once")
      ->transform(whole_number(1, 4096))
      ->capture_default_str();
  add_step_option(verb, options);
  verb.add_option("--chunk", options.chunk_tokens, "Tokens of one prompt in one step (0: the whole step)")
      ->transform(whole_number(0, kMaxStepTokens))
      ->capture_default_str();
  verb.add_option(
          "--max-step-ms", options.max_step_ms,
          "How long a step may take that computes prompts while answers are generated (0: as it comes)")
      ->transform(whole_number(0, 60'000))
      ->capture_default_str();
  verb.add_option(
          "--kv-cache-tokens", options.kv_cache_tokens,
          "Tokens that the KV cache holds as computed (0: what the sequences take, as far as memory allows)")
      ->transform(whole_number(std::int64_t{0}, kMaxCacheTokens));
  verb.add_flag("--no-prefix-cache", options.no_prefix_cache, "Compute every prompt from its start");
  verb.add_option(
      "--public-prefix", options.public_prefix_files,
      "A file with a text whose computation all tenants share, where a prompt begins with it or it is "
      "a chat's system message");
  add_prefill_only_option(verb, options);
}

void add_queue_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option(
          "--waiting-policy", options.waiting_policy,
          "Who of those that wait is next: as they came (fifo), by the request's `priority` (priority), "
          "then the least served tenant and who gains most (slo-value)")
      ->check(one_of(std::vector<std::string>(kWaitingPolicyNames.begin(), kWaitingPolicyNames.end())))
      ->capture_default_str();
  verb.add_option("--ageing-ms", options.ageing_ms,
                  "After so long in the queue a request counts as one priority better, and again (0: never)")
      ->transform(whole_number(0, 3'600'000))
      ->capture_default_str();
  verb.add_option(
          "--ttft-target-ms", options.ttft_target_ms,
          "Refuse a request at once (503) whose first token others would delay beyond this; thirty times "
          "as much above priority 0 (0: refuse nobody for it)")
      ->transform(whole_number(0, 3'600'000))
      ->capture_default_str();
  verb.add_option("--max-queue", options.max_queued_requests,
                  "Requests that may wait, where each prompt of a list is one, with all its choices; one too "
                  "many is refused (503), unless its key has less than an equal part of them. Half as many "
                  "may wait behind priority 0")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  verb.add_option("--max-queue-kv", options.max_queued_kv_caches,
                  "Prompt tokens that may wait and are not cached, in times what the KV cache holds, by the "
                  "same rules, or a "
                  "prompt of any length where its key has none waiting (0: any number)")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb.add_option("--queue-timeout", options.queue_timeout_seconds,
                  "A request of which nothing has begun after so many seconds ends with a 503, or, where its "
                  "stream has begun with a ping, with an error in it (0: it waits)")
      ->transform(whole_number(0, 86'400))
      ->capture_default_str();
}

Result<EngineConfig> make_engine_config(const EngineOptions& options, const GlobalOptions& globals) {
  EngineConfig config;
  config.num_threads = globals.threads;
  config.isa = globals.isa;
  if (!globals.memory.empty()) {
    auto bytes = parse_bytes(globals.memory);
    if (!bytes) return make_error(ErrorKind::kUsage, "--memory: " + bytes.error().message, "memory");
    config.memory_bytes = *bytes;
  }
  config.max_model_len_tokens = options.ctx_tokens;
  config.kv_cache_type = *kv_cache_type_named(options.kv_type);
  if (!options.kv_disk.empty()) {
    const auto bytes = parse_bytes(options.kv_disk);
    if (!bytes) return make_error(ErrorKind::kUsage, "--kv-disk: " + bytes.error().message, "kv_disk");
    config.kv_disk_bytes = *bytes;
  }
  config.kv_disk_directory = options.kv_disk_dir;
  config.fast = options.fast;
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
