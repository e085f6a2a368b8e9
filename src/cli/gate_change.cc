#include "cli/gate_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "engine/same_tokens.h"
#include "store/model_store.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kExact = "exact";

std::string kv_words(const GateOptions& options) {
  const KvParams& kv = options.kv;
  if (kv.quality == KvQuality::kExact) return "--kv-quality exact";
  std::string words = fmt::format("--kv-policy {}", kv.policy);
  if (!options.engine.kv_forecast.empty()) words += " --kv-forecast " + options.engine.kv_forecast;
  words += kv.budget_bytes > 0 ? fmt::format(" --kv-budget {}", kv.budget_bytes) : fmt::format(" --kv-budget {:g}", kv.budget);
  if (kv.max_lost_share) words += fmt::format(" --kv-max-lost {:g}", *kv.max_lost_share);
  return kv.quality == KvQuality::kBestEffort ? words + " --kv-quality best_effort" : words;
}

// Whether `reference` is the same file as the model.
Result<bool> is_same_model(const GateOptions& options) {
  if (options.against == kExact) return true;
  KVASIR_TRY(const std::string model, store::resolve_model(options.model));
  KVASIR_TRY(const std::string reference, store::resolve_model(options.against));
  std::error_code none;
  return std::filesystem::equivalent(model, reference, none);
}

// The one difference in words. Error (kUsage): there is none, or several.
Result<std::string> the_change(const GateOptions& options, bool is_same) {
  std::vector<std::string> changes;
  if (options.names_kv) changes.push_back(kv_words(options));
  if (options.engine.fast) changes.emplace_back("--fast");
  if (!options.engine.adapters.empty()) changes.push_back("--lora " + options.engine.adapters.front());
  if (!is_same) changes.emplace_back("its file");
  if (!options.engine.kv_forecast.empty() && (!options.names_kv || options.kv.policy != "ladder-learned")) {
    return make_error(ErrorKind::kUsage, "--kv-forecast: it changes nothing without --kv-policy ladder-learned and --kv-budget", "kv-forecast");
  }
  if (options.engine.adapters.size() > 1) {
    return make_error(ErrorKind::kUsage, "--lora: the gate measures one adapter at a time", "lora");
  }
  if (changes.size() == 1) return changes.front();
  if (changes.empty()) {
    return make_error(ErrorKind::kUsage,
                      "nothing is changed: name --kv-policy and --kv-budget, --fast or --lora, or another model behind --against");
  }
  return make_error(ErrorKind::kUsage, fmt::format("the gate measures one change at a time, not {}", fmt::join(changes, " and ")));
}

Status check_comparable(const Engine& a, const Engine& b) {
  const bool are_as_many = a.tokenizer()->vocab().num_tokens() == b.tokenizer()->vocab().num_tokens() && a.model_info().vocab_size == b.model_info().vocab_size;
  if (are_as_many && kvasir::check_same_tokens("--against", a.tokenizer(), b.tokenizer())) return {};
  return make_error(ErrorKind::kUnmet, "--against: the models have other tokens, so their answers cannot be compared", "against");
}

}  // namespace

Result<GateSessions> open_gate_sessions(const GateOptions& options, const GlobalOptions& globals, BlockedSignals& signals) {
  KVASIR_TRY(const bool is_same, is_same_model(options));
  GateSessions sessions;
  KVASIR_TRY(sessions.change, the_change(options, is_same));
  EngineOptions changed_options = options.engine;
  changed_options.max_num_batched_tokens = options.chunk_tokens;  // both arms take the same chunks
  KVASIR_TRY(const EngineConfig changed, make_engine_config(changed_options, globals));
  KVASIR_TRY(sessions.changed, open_text_session(options.model, changed, globals, &signals));
  if (!changed.adapters.empty()) sessions.adapter = changed.adapters.front().name;
  const bool has_own_weights = options.engine.fast || !is_same;
  if (!has_own_weights) return sessions;
  EngineOptions reference_options = changed_options;
  reference_options.fast = false;
  KVASIR_TRY(EngineConfig reference, make_engine_config(reference_options, globals));
  KVASIR_TRY(sessions.reference, open_text_session(is_same ? options.model : options.against, std::move(reference), globals, &signals));
  KVASIR_CHECKED(check_comparable(sessions.changed_engine(), sessions.reference_engine()));
  return sessions;
}

}  // namespace kvasir::cli
