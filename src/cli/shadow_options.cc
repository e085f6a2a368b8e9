#include "cli/shadow_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "engine/kv_params.h"
#include "engine/same_tokens.h"
#include "io/model_fingerprint.h"
#include "quality/shadowed_engine.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

// Weights as they are packed, the keys and values of a text and what a step needs.
std::int64_t bytes_for(const std::string& path) {
  constexpr std::int64_t kBesideWeights = std::int64_t{512} << 20;
  const std::int64_t file_bytes = io::weight_file_bytes(path);
  return file_bytes + file_bytes / 4 + kBesideWeights;
}

std::vector<std::string> lossy_policy_names() {
  std::vector<std::string> names = kv_policy_names();
  std::erase(names, "none");
  return names;
}

// One text at a time, of the same length at most, and nothing besides.
EngineConfig config_of_scorer(const EngineConfig& served, const ModelInfo& info, const std::string& path) {
  EngineConfig config;
  config.model_path = path;
  config.memory_bytes = bytes_for(path);
  config.process_bytes = 1;  // it is the served model's process
  config.num_threads = served.num_threads;
  config.max_model_len_tokens = info.max_model_len_tokens;
  config.kv_cache_tokens = info.max_model_len_tokens;
  config.max_num_seqs = 1;
  config.max_step_ms = served.max_step_ms;
  config.step_turn = served.step_turn;
  config.prefix_cache = false;
  return config;
}

}  // namespace

void add_shadow_options(CLI::App& verb, ShadowOptions& options) {
  verb.add_option("--kv-shadow", options.share,
                  "Share of requests, 0 to 1, whose answers are scored again without a KV policy: a policy that breaks its promise is "
                  "held back (0: none)")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option_function<double>(
          "--kv-shadow-kl",
          [&options](double kl) {
            options.gate.promised_kl = kl;
            options.gate.promised_kl_best_effort = std::min(0.5, 5 * kl);
          },
          "Promised divergence from the exact answers, nats a token, at kv_quality gate; five times it at best_effort")
      ->check(finite_number())
      ->check(CLI::Range(1e-5, 0.5))
      ->default_str("0.01");
  verb.add_flag("--kv-auto-resume", options.gate.resumes_by_itself,
                "A policy that is held back serves again after 500 clean shadows, without an operator's word");
  verb.add_option("--kv-canary", options.canary,
                  "KV policy that takes the place of --kv-policy for 1, 5, 25 and 100% of the tenants, 200 shadows a stage")
      ->check(one_of(lossy_policy_names()));
  verb.add_option("--shadow-against", options.against, "Model that scores the answers instead of the served one, e.g. the file that was quantised");
}

Status set_shadows(ShadowOptions& options, const KvParams& kv, std::size_t num_models) {
  if (!options.is_on() && !options.canary.empty()) {
    return make_error(ErrorKind::kUsage, "--kv-canary: it needs --kv-shadow, the share of requests that are scored", "kv-canary");
  }
  if (options.canary == kv.policy) {
    return make_error(ErrorKind::kUsage, fmt::format("--kv-canary: {} serves already (--kv-policy)", kv.policy), "kv-canary");
  }
  if (!options.canary.empty() && !is_compressed(kv)) {
    return make_error(ErrorKind::kUsage, "--kv-canary: it needs a policy whose place it takes, so --kv-policy and --kv-budget below 1", "kv-canary");
  }
  options.gate.champion = kv.policy;
  options.gate.canary = options.canary;
  if (!options.is_on() && !options.against.empty()) {
    return make_error(ErrorKind::kUsage, "--shadow-against: it needs --kv-shadow, the share of requests that are scored", "shadow-against");
  }
  if (!options.is_on() && options.gate.resumes_by_itself) {
    return make_error(ErrorKind::kUsage, "--kv-auto-resume: it needs --kv-shadow, the share of requests that are scored", "kv-auto-resume");
  }
  if (num_models > 1 && !options.against.empty()) {
    return make_error(ErrorKind::kUsage, fmt::format("--shadow-against: it goes with one model, {} are served", num_models), "shadow-against");
  }
  return {};
}

Result<std::int64_t> bytes_of_scorer(const ShadowOptions& options) {
  if (options.against.empty()) return 0;
  KVASIR_TRY(const std::string path, store::resolve_model(options.against));
  return bytes_for(path);
}

Result<std::unique_ptr<Engine>> with_shadows(std::unique_ptr<Engine> engine, const ShadowOptions& options, const EngineConfig& config, Logger& logger) {
  if (!options.is_on() || engine->model_info().is_encoder) return engine;
  std::unique_ptr<Engine> exact;
  if (!options.against.empty()) {
    KVASIR_TRY(const std::string path, store::resolve_model(options.against));
    logger.info("{}: loading, to score answers", printable_line(options.against));
    auto loaded = Engine::load(config_of_scorer(config, engine->model_info(), path));
    if (!loaded) return make_error(loaded.error().kind, fmt::format("shadow-against: {}", loaded.error().message), "shadow-against");
    exact = *std::move(loaded);
    if (exact->tokenizer() == nullptr || engine->tokenizer() == nullptr) {
      return make_error(ErrorKind::kUsage, "shadow-against: one of the two models has no tokenizer, so nobody knows whether their tokens are the same",
                        "shadow-against");
    }
    KVASIR_CHECKED(check_same_tokens("shadow-against", exact->tokenizer(), engine->tokenizer()));
  }
  quality::GateConfig gate = options.gate;
  gate.is_against_another = exact != nullptr;
  const quality::ShadowConfig shadows = {
      .share = options.share, .gate = gate, .journal = config.kv_journal, .warn = [&logger](const std::string& line) { logger.warning("{}", line); }};
  return std::make_unique<quality::ShadowedEngine>(std::move(engine), shadows, std::move(exact));
}

}  // namespace kvasir::cli
