#include "cli/calibration_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "backend/observing/observing_backend.h"
#include "backend/registry.h"
#include "base/printable.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/model_session.h"
#include "eval/divergence.h"
#include "eval/scoring.h"
#include "eval/windows.h"

namespace kvasir::cli {
namespace {

constexpr const char* kDevice = "observing";
constexpr std::int64_t kTokensOfFile = 65'536, kTokensOfSelf = 16'384;
constexpr std::int32_t kSampledAtOnce = 16;

Result<ModelSession> open_observed(const std::string& model, const GlobalOptions& globals, Interruption& interruption) {
  EngineOptions engine;
  engine.device = kDevice;
  engine.ctx_tokens = kCalibrationWindow;
  engine.kv_type = "f32";
  engine.max_num_seqs = kSampledAtOnce;
  engine.max_num_batched_tokens = kCalibrationWindow;
  engine.no_prefix_cache = true;
  engine.no_packed_cache = true;
  KVASIR_TRY(EngineConfig config, make_engine_config(engine, globals));
  KVASIR_TRY(ModelSession session, open_quietly(model, std::move(config), globals, interruption.signals()));
  if (session.engine->model_info().is_encoder || session.engine->tokenizer() == nullptr) {
    return make_error(ErrorKind::kUsage, "--calibrate: the model reads no text of its own: it is an encoder, or has no tokenizer", "calibrate");
  }
  return session;
}

Result<std::vector<std::vector<TokenId>>> windows_of(const CalibrationOptions& options, Engine& engine,
                                                     Interruption& interruption) {
  const bool is_self = options.text == "self";
  const std::int64_t wanted = options.num_tokens > 0 ? options.num_tokens : is_self ? kTokensOfSelf : kTokensOfFile;
  const auto num_windows = static_cast<std::int32_t>(std::max<std::int64_t>(1, wanted / kCalibrationWindow));
  if (is_self) return eval::sample_windows(engine, eval::opening_of(engine), num_windows, kCalibrationWindow, interruption.keep_going());
  KVASIR_TRY(const std::string text, read_input_file(options.text));
  return eval::cut_windows(*engine.tokenizer(), text, kCalibrationWindow, num_windows);
}

}  // namespace

Result<CalibrationRun> run_calibration(const CalibrationOptions& options, const std::string& model,
                                       std::set<std::string, std::less<>> with_products, const GlobalOptions& globals,
                                       ThreadPool& pool, Interruption& interruption, ProgressReporter& progress) {
  CalibrationRun run;
  run.text_name = options.text == "self" ? "self" : std::filesystem::path(options.text).filename().string();
  run.statistics = std::make_unique<compress::InputStatistics>(std::move(with_products), pool);
  compress::InputStatistics& statistics = *run.statistics;
  backend::add_device(kDevice, [&statistics](const kernels::KernelTable& kernels, ThreadPool& threads) {
    return std::make_unique<backend::ObservingBackend>(kernels, threads, statistics);
  });
  KVASIR_TRY(const ModelSession session, open_observed(model, globals, interruption));
  statistics.pause();  // what the model is multiplied by while it writes is not asked
  progress.report_fraction("calibrating", 0.0);
  KVASIR_TRY(const auto windows, windows_of(options, *session.engine, interruption));
  statistics.go_on();
  for (std::size_t i = 0; i < windows.size(); ++i) {
    // Logits are looked at so that every row is computed in every layer.
    KVASIR_CHECKED(eval::observe_logits(*session.engine, windows[i], [](std::int32_t, std::span<const float>) {}, interruption.keep_going()));
    run.num_tokens += std::ssize(windows[i]);
    progress.report_fraction("calibrating", static_cast<double>(i + 1) / static_cast<double>(windows.size()));
  }
  statistics.finish();
  return run;
}

}  // namespace kvasir::cli
