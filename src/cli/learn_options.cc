#include "cli/learn_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/text_file.h"
#include "cli/number_range.h"
#include "engine/kv_params.h"
#include "io/kv_calibration.h"
#include "quality/kv_learning.h"
#include "store/model_store.h"

namespace kvasir::cli {

void add_learn_options(CLI::App& verb, LearnOptions& options) {
  const auto names_it = [](const std::string& path) { return std::string(path.empty() ? "must name a file" : ""); };
  CLI::Option* file = verb.add_option("--kv-learn", options.file,
                                      "Learn ladder-learned's forecast from requests, and keep it in this file; learning goes on from one that is there")
                          ->check(CLI::Validator(names_it, ""));
  verb.add_option("--kv-shadow-share", options.shadow_share, "Share of ladder-learned's requests, 0 to 1, that keep all of their KV to learn from")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0))
      ->needs(file)
      ->capture_default_str();
  verb.add_option("--kv-learn-cpu", options.cpu_share, "Share of processor time, above 0 to 1, that learning may take on average")
      ->check(finite_number())
      ->check(CLI::Range(0.0001, 1.0))
      ->needs(file)
      ->capture_default_str();
}

Status check_learning(const LearnOptions& options, std::size_t num_models) {
  if (options.file.empty()) return {};
  if (num_models != 1) return make_error(ErrorKind::kUsage, fmt::format("--kv-learn: it goes with one model, {} are served", num_models), "kv-learn");
  std::error_code ignored;
  if (std::filesystem::exists(options.file, ignored)) KVASIR_CHECKED(io::read_kv_forecast(options.file));
  return can_replace_text_file(options.file);
}

void warn_of_unused_forecasts(const LearnOptions& options, const EngineConfig& config, const KvParams& defaults, const std::string& canary, Logger& logger) {
  constexpr std::string_view kLearned = "ladder-learned";
  if (uses_learned_forecast(defaults) || canary == kLearned) return;
  constexpr std::string_view kUnless = "without --kv-policy ladder-learned and --kv-budget, unless requests ask for both";
  if (!config.kv_forecast_path.empty()) logger.warning("--kv-forecast: it changes nothing {}", kUnless);
  if (!options.file.empty()) logger.warning("--kv-learn: nothing is learned {}", kUnless);
}

Result<std::shared_ptr<const void>> begin_learning(const LearnOptions& options, const std::string& model, EngineConfig& config, Logger& logger) {
  if (options.file.empty()) return nullptr;
  const quality::KvLearningConfig learning = {.path = options.file,
                                              .shadow_share = options.shadow_share,
                                              .cpu_share = options.cpu_share,
                                              .warn = [&logger](const std::string& line) { logger.warning("{}", line); }};
  KVASIR_TRY(const std::string path, store::resolve_model(model));
  config.model_path = path;
  return quality::begin_kv_learning(learning, config);
}

}  // namespace kvasir::cli
