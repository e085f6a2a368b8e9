#include "cli/source_logits.h"

#include <utility>

#include "cli/engine_options.h"
#include "cli/model_session.h"

namespace kvasir::cli {
namespace {

constexpr std::int32_t kWindows = 4, kWindowTokens = 512;

Result<ModelSession> open_exact(const std::string& model, const GlobalOptions& globals, Interruption& interruption) {
  EngineOptions engine;
  engine.ctx_tokens = kWindowTokens;
  engine.kv_type = "f32";
  engine.max_num_seqs = kWindows;
  engine.no_prefix_cache = true;
  engine.no_packed_cache = true;
  KVASIR_TRY(EngineConfig config, make_engine_config(engine, globals));
  return open_quietly(model, std::move(config), globals, interruption.signals());
}

}  // namespace

Result<std::optional<SourceLogits>> SourceLogits::record(const std::string& model, const std::string& folder,
                                                         const GlobalOptions& globals, Interruption& interruption) {
  KVASIR_TRY(const ModelSession session, open_exact(model, globals, interruption));
  Engine& engine = *session.engine;
  if (engine.model_info().is_encoder || engine.tokenizer() == nullptr) return std::nullopt;
  SourceLogits logits;
  KVASIR_TRY(logits.windows_, eval::sample_windows(engine, eval::opening_of(engine), kWindows, kWindowTokens, interruption.keep_going()));
  KVASIR_TRY(logits.file_, eval::LogitsFile::create(folder, engine.model_info().vocab_size));
  KVASIR_CHECKED(eval::record_logits(engine, logits.windows_, logits.file_, interruption.keep_going()));
  return logits;
}

Result<eval::Divergence> SourceLogits::compare(const std::string& path, const GlobalOptions& globals,
                                               Interruption& interruption) const {
  KVASIR_TRY(const ModelSession session, open_exact(path, globals, interruption));
  return eval::measure_divergence(*session.engine, windows_, file_, interruption.keep_going());
}

}  // namespace kvasir::cli
