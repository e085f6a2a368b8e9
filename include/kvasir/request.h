// A client's request to the engine, and its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/guide.h"
#include "kvasir/ids.h"
#include "kvasir/pooling.h"
#include "kvasir/result.h"
#include "kvasir/sampling_params.h"

namespace kvasir {

// Raw logits [vocab_size] after one prompt position; borrowed for the call, on the engine thread.
using LogitsObserver = std::function<void(std::int32_t position, std::span<const float> logits)>;

// How far a policy may go to keep its budget.
enum class KvQuality : std::uint8_t {
  kExact,       // nothing is lossy
  kGate,        // formats, and drops only of what later queries are expected to pay almost no attention to
  kBestEffort,  // whatever the budget takes
};

constexpr std::string_view name_of(KvQuality quality) {
  switch (quality) {
    case KvQuality::kExact: return "exact";
    case KvQuality::kGate: return "gate";
    case KvQuality::kBestEffort: return "best_effort";
  }
  return "";
}

// How a request's keys and values may be treated once later tokens have seen them. As it stands, nothing is
// lossy.
struct KvParams {
  std::string policy = "ladder";  // one of kv_policy_names(); those that name a format have no budget
  // The budget as a share of the size of the same keys and values in f16, above 0 and at most 1. It is of the
  // whole prompt from the first token on, so its beginning stays fine as long as there is room.
  double budget = 1.0;
  std::int64_t budget_bytes = 0;  // of the layers without a window, at most; 0: no such limit
  KvQuality quality = KvQuality::kGate;
  // Instead of the quality's: the most attention that a later query may be expected to pay to what is
  // dropped, in each layer and head, 0 to 1. Beyond that the budget is exceeded. For policies that forecast.
  std::optional<double> max_lost_share = {};
  bool learns = true;  // a server that learns from traffic may learn from this request
  std::uint64_t seed = 0;            // of policies that draw lots
  std::int32_t only_at_tokens = 0;   // > 0: the policy acts once, after the step that computes just so many
  bool is_share_of_present = false;  // the budget is of the tokens that are computed (evaluation)
  // Calibration: the policy touches KV heads [first_head, end_head) alone, numbered through the layers
  // without a window; both 0: all.
  std::int32_t first_head = 0, end_head = 0;
};

// "none" first.
std::vector<std::string> kv_policy_names();

// Whoever has it keeps an adapter in memory.
using AdapterHold = std::shared_ptr<const void>;

// Immutable once submitted.
struct Request {
  std::vector<TokenId> prompt_token_ids;
  // The text of a pair that each prompt token belongs to, below ModelInfo::num_token_types. Empty: all 0.
  std::vector<std::uint8_t> prompt_token_types;
  SamplingParams sampling;
  // The answer may say this; guesses are made of it (EngineConfig::speculates). It changes no token.
  std::vector<TokenId> predicted_token_ids = {};
  bool speculates = true;  // where the engine does
  // Benchmarks: the answer's tokens, each guessed at its place. There are no other guesses then.
  std::vector<TokenId> replayed_token_ids = {};
  KvParams kv;
  // Tokens that end an answer may come where the guide may end, and nowhere else. Where nothing may follow the answer
  // ends, whatever min_tokens and ignore_eos say. A stop string counts where the text before it is one of the guide.
  std::optional<Guide> guide = {};
  // The guide as Engine::prepare_guide() gave it; null: submit() compiles it.
  CompiledGuide compiled_guide = {};
  std::string adapter = {};     // one of Engine::adapters(); empty: the model as it is
  std::optional<float> adapter_scale = {};  // instead of AdapterConfig::scale
  // The adapter as Engine::prepare_adapter() gave it; null: submit() reads it where it has left memory.
  AdapterHold adapter_hold = {};
  std::string client_id;        // the client's name for it, for logs; may be empty
  std::string tenant;           // whom it is served for: tenants get equal shares, of steps and of the cache
  std::string cache_namespace;  // sequences share KV only within one namespace (a tenant)
  std::int32_t priority = 0;    // lower runs first
  std::int32_t start_within_ms = 0;  // ends with kUnavailable when nothing of it ran by then; 0: it waits
  // One of several that belong together, of which the first was let in: it is refused neither for the queue
  // nor for its late start.
  bool is_admitted = false;
  // False: neither finds cached KV nor leaves any. A request with max_tokens 0 then holds the KV of one layer
  // at a time (EngineConfig::prefill_only).
  bool use_prefix_cache = true;
  // With SamplingParams::prompt_logprobs: those of prompt tokens before this one are neither computed nor given.
  std::int32_t prompt_logprobs_from = 0;
  bool want_attention_scores = false;  // report attention per KV block with each token
  // An embedding, or with kRank the classifier's logits, instead of an answer: max_tokens is 0 then, and nobody
  // looks at the logits of tokens. Of the final hidden states, after the last norm.
  Pooling pooling = Pooling::kNone;
  // The first so many numbers of the embedding alone, again of length 1 (Kusupati et al. 2022, "Matryoshka");
  // 0: all.
  std::int32_t dimensions = 0;
  LogitsObserver
      logits_observer;  // when set, the whole prompt is computed and every position is shown in order
};

enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled, kError };

constexpr std::string_view name_of(FinishReason reason) {
  constexpr std::string_view kNames[] = {"stop", "length", "cancelled", "error"};
  return kNames[static_cast<std::size_t>(reason)];
}

struct TokenLogprob {
  TokenId token = kNoToken;
  float logprob = 0.0f;   // natural log, of the distribution after penalties and bias, before temperature
  std::int32_t rank = 0;  // 1: the most likely
};

struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // most likely first
};

// The KV of a choice under a policy, in the layers without a window: when its policy acted last, or as it is while
// the policy has not acted. A cell is 16 tokens of a layer and KV head. A block that several choices share counts for
// each of them.
struct KvUsage {
  std::int64_t bytes = 0;       // cells, their directory entries and their scores
  std::int64_t full_bytes = 0;  // that KvParams::budget is a share of: the same cells in f16; 0: there is no policy
  std::int64_t num_cells = 0;
  std::int64_t num_dropped_cells = 0;  // that attention does not read
  bool is_downgraded = false;  // another policy served it than was asked for, which is held back
  bool is_shadow = false;      // all of it stayed as it was computed, for a server that learns from traffic

  double share() const {
    return full_bytes == 0 ? 1.0 : static_cast<double>(bytes) / static_cast<double>(full_bytes);
  }
  double dropped_share() const {
    return num_cells == 0 ? 0.0 : static_cast<double>(num_dropped_cells) / static_cast<double>(num_cells);
  }
  KvUsage& operator+=(const KvUsage& other) {
    bytes += other.bytes;
    full_bytes += other.full_bytes;
    num_cells += other.num_cells;
    num_dropped_cells += other.num_dropped_cells;
    is_downgraded |= other.is_downgraded;
    is_shadow |= other.is_shadow;
    return *this;
  }
};

struct Usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t completion_tokens = 0;
  std::int32_t cached_tokens = 0;  // of the prompt, served from the prefix cache
  std::int32_t forced_tokens = 0;  // of the answers, where their guide allowed no other
  // Guesses that steps have checked, and right ones.
  std::int32_t draft_tokens = 0;
  std::int32_t draft_tokens_accepted = 0;
  bool had_prediction = false;  // Request::predicted_token_ids
  // Tokens of all answers that were drawn, where some were not given (a server's best_of); else 0.
  std::int32_t search_tokens = 0;
  // Bytes of KV that a choice kept in the layers without a window, as a share of what KvParams::budget is of:
  // when its policy acted last, the mean over all times, and the most just before one.
  double kv_bytes_share = 1.0;
  double kv_bytes_share_mean = 1.0;
  double kv_bytes_share_peak = 1.0;
  KvUsage kv;  // of all choices
};

// The cost of a request. With several choices the times and the preemptions are those of the choice that took
// longest.
struct RequestCost {
  double queue_ms = 0.0;         // until it first left the queue
  double prefill_ms = 0.0;       // from there until its prompt was computed
  double decode_ms = 0.0;        // from there until its last token
  double cpu_ms = 0.0;           // its tokens' share of the steps' time on all threads
  double kv_byte_seconds = 0.0;  // keys and values it held, over time
  std::int32_t num_preemptions = 0;
};

// The attention of one step, summed over query heads and the layers without a window. per_block[b] belongs to
// the 16 tokens from 16 b. Only the last query counts; under a KV policy that looks at attention, the queries
// that it looks at count.
struct AttentionScores {
  std::vector<float> per_block;
};

// One step's news about one choice of a request. `text` is valid UTF-8 and may lag behind the tokens while a
// character is incomplete or a stop string might be starting.
struct RequestOutput {
  RequestId request_id{};
  std::int32_t index = 0;  // which choice, 0..n-1
  std::vector<TokenId> token_ids;
  std::string text;
  std::vector<PositionLogprobs> logprobs;  // one per token in token_ids when asked for
  std::vector<PositionLogprobs>
      prompt_logprobs;  // once, with the first output of choice 0; entry 0 has no token
  std::optional<AttentionScores> attention_scores;
  // With Request::pooling, in the only output: [ModelInfo::embedding_size], of length 1; with kRank
  // [ModelInfo::num_labels], as the classifier gives them.
  std::vector<float> embedding;
  std::optional<FinishReason> finish_reason;  // set exactly once per choice, in its last output
  std::string stop_string;                    // which stop string ended it
  TokenId stop_token = kNoToken;              // which token ended it
  std::optional<Error> error;                 // with FinishReason::kError
  Usage usage;                                // totals so far
  RequestCost cost;                           // complete with the last output
  bool request_finished = false;              // the last output of the last choice
};

// Called on the engine thread: must be quick, must not block and must not call back into the engine.
using OutputSink = std::function<void(RequestOutput)>;

}  // namespace kvasir
