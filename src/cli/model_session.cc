#include "cli/model_session.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/printable.h"
#include "base/progress_reporter.h"
#include "cli/build_info.h"
#include "cli/standard_output.h"
#include "store/model_store.h"

namespace kvasir::cli {

void warn_of_session(std::string_view line) { say(fmt::format("kvasir: {}", line)); }

Result<ModelSession> open_session(const std::string& model, EngineConfig config, const GlobalOptions& globals,
                                  BlockedSignals* signals, const std::string& kv_log, const SessionWarn& warn) {
  KVASIR_TRY(config.model_path, store::resolve_model(model));
  config.model_name = printable_line(model);
  if (!config.packed_cache_directory) config.packed_cache_directory = store::packed_cache_of(config.model_path);
  ModelSession session;
  if (!kv_log.empty()) {
    KVASIR_TRY(session.kv_log, journal::KvLog::open(kv_log, {.version = build_info().version, .warn = warn}));
    config.kv_journal = session.kv_log.get();
  }
  ProgressReporter progress({.quiet = globals.quiet});
  const auto begin = std::chrono::steady_clock::now();
  KVASIR_TRY(session.engine, Engine::load(config, [&](const std::string& phase, double fraction) {
               progress.report_fraction("loading " + phase, fraction);
               if (signals == nullptr || !signals->take()) return true;
               progress.clear();
               std::_Exit(kExitInterrupted);
             }));
  progress.clear();
  session.weights_watch = std::make_unique<WeightsWatch>(config.model_path);
  if (!globals.quiet) {
    for (const std::string& notice : session.engine->model_info().notices) say("kvasir: " + notice);
  }
  session.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return session;
}

Result<ModelSession> open_text_session(const std::string& model, EngineConfig config,
                                       const GlobalOptions& globals, BlockedSignals* signals,
                                       const std::string& kv_log) {
  KVASIR_TRY(ModelSession session, open_session(model, std::move(config), globals, signals, kv_log));
  if (session.engine->tokenizer() != nullptr) return session;
  return make_error(ErrorKind::kBadFile, fmt::format("{}: the file has no tokenizer", model));
}

}  // namespace kvasir::cli
