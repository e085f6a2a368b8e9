// A MODEL argument as a running engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/blocked_signals.h"
#include "cli/verb.h"
#include "cli/weights_watch.h"
#include "journal/kv_log.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct ModelSession {
  std::unique_ptr<journal::KvLog> kv_log;  // null: none was asked for. The engine writes to it until its end
  std::unique_ptr<Engine> engine;
  std::unique_ptr<WeightsWatch> weights_watch;
  double load_ms = 0.0;
};

// Resolves and loads; progress goes to stderr, unless quiet. One of `signals` (may be null) during the
// loading ends the process with kExitInterrupted: there is nothing to keep yet. With `kv_log` what KV
// policies do is logged in that file. Errors: as store::resolve_model, Engine::load and
// journal::KvLog::open.
// `warn` is told what goes wrong while the session is there, from any thread.
using SessionWarn = std::function<void(std::string_view line)>;
void warn_of_session(std::string_view line);  // on stderr
Result<ModelSession> open_session(const std::string& model, EngineConfig config, const GlobalOptions& globals,
                                  BlockedSignals* signals = nullptr, const std::string& kv_log = {},
                                  const SessionWarn& warn = warn_of_session);

// As open_session, without a line on stderr: a step of a longer work that shows its own progress.
inline Result<ModelSession> open_quietly(const std::string& model, EngineConfig config, const GlobalOptions& globals,
                                         BlockedSignals& signals) {
  GlobalOptions quiet = globals;
  quiet.quiet = true;
  return open_session(model, std::move(config), quiet, &signals);
}

// As open_session, of a model that text is measured on. Errors: kBadFile too when the file has no tokenizer.
Result<ModelSession> open_text_session(const std::string& model, EngineConfig config,
                                       const GlobalOptions& globals, BlockedSignals* signals = nullptr,
                                       const std::string& kv_log = {});

}  // namespace kvasir::cli
