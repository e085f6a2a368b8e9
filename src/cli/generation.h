// One request from submit to its end, with text handed on as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/blocked_signals.h"
#include "kvasir/engine.h"

namespace kvasir::cli {

struct Generation {
  std::string text;
  std::vector<TokenId> token_ids;
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_string;       // which one ended it
  TokenId stop_token = kNoToken;  // likewise
  Usage usage;
  double ttft_ms = 0.0;               // submit to the first token
  double prefill_tokens_per_s = 0.0;  // computed prompt tokens over ttft; 0 without a token
  double decode_tokens_per_s = 0.0;   // tokens after the first over their time; 0 with fewer than two
};

using TextSink = std::function<void(std::string_view piece)>;

// How many tokens of the prompt are computed, of how many.
using PromptSink = std::function<void(std::int32_t computed_tokens, std::int32_t prompt_tokens)>;

// The adapter that the model was loaded with; empty: none.
std::string adapter_of(const Engine& engine);

// Blocks until the request has ended; `on_text` runs on the calling thread, and so does `on_prompt` (may be
// empty) now and then before the first text. One of `signals` cancels the request, which then ends with
// kCancelled and what it had. Errors: as Engine::submit, and the request's own.
Result<Generation> generate(Engine& engine, Request request, BlockedSignals& signals, const TextSink& on_text,
                            const PromptSink& on_prompt = {});

}  // namespace kvasir::cli
