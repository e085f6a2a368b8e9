// The one change that `kvasir eval gate` measures, and the two engines around it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/engine_options.h"
#include "cli/model_session.h"
#include "cli/verb.h"
#include "eval/run_request.h"
#include "kvasir/request.h"

namespace kvasir::cli {

struct GateOptions {
  std::string model, against;
  std::string file, tasks, schemas;  // empty: none
  std::string report;                // folder; empty: none
  std::vector<std::string> layers = {"basic", "task", "structured", "long"};
  KvParams kv;
  bool names_kv = false;  // one of the flags of the KV policy was given
  std::int32_t ctx_tokens = 2048;
  std::int32_t num_windows = 8, first_window = 0;
  std::int32_t num_tasks = 64, num_schemas = 200, num_questions = 24, num_depths = 11;
  std::vector<std::int32_t> needle_tokens = {1024, 2048};
  std::int32_t max_answer_tokens = 256;
  std::int32_t least_items = 20;
  std::int32_t chunk_tokens = 128;
  EngineOptions engine = {.max_num_seqs = 1, .no_prefix_cache = true, .no_prefill_only = true};
};

// Both arms' engines; the reference's own where the weights differ, else one for both.
struct GateSessions {
  ModelSession changed, reference;  // reference.engine is null: the same engine
  std::string adapter;              // of the changed arm; empty: none
  std::string change;               // in words

  Engine& changed_engine() const { return *changed.engine; }
  Engine& reference_engine() const { return reference.engine ? *reference.engine : *changed.engine; }
};

// Errors: kUsage where no change is named or several are, kUnmet where the models have other tokens, as
// open_text_session.
Result<GateSessions> open_gate_sessions(const GateOptions& options, const GlobalOptions& globals, BlockedSignals& signals);

}  // namespace kvasir::cli
