// A request between submit and its last output, as the engine thread keeps it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/adapter_set.h"
#include "engine/beam_search.h"
#include "engine/guided_choice.h"
#include "engine/output_processor.h"
#include "grammar/bitmask.h"
#include "kv/policy/bytes_use.h"
#include "kvasir/request.h"
#include "model/layers/pooled_head.h"
#include "runtime/embedding_sum.h"
#include "sched/scheduler_output.h"
#include "sched/sequence.h"

namespace kvasir {

// The adapter of a request, and how much of it.
struct UsedAdapter {
  AdapterSet::Held entry = {};  // null: the model as it is
  float scale = 1.0f;

  // For whatever depends on the weights; 0: the model as it is.
  std::uint64_t version() const { return entry == nullptr ? 0 : entry->version_at(scale); }
  backend::ScaledAdapter as_rows_run_it() const {
    return entry == nullptr ? backend::ScaledAdapter() : backend::ScaledAdapter{entry->weights.get(), scale};
  }
};

struct ActiveChoice {
  // Appends the update's tokens and their text to `output`, up to the token in whose text a stop string ends:
  // tokens sampled behind it do not exist. A stop string sets output.finish_reason, and so does a guide that nothing
  // may follow.
  void append(const sched::SequenceUpdate& update, bool include_stop_token, RequestOutput& output);

  std::unique_ptr<OutputProcessor> text;  // null without a tokenizer
  std::optional<GuidedChoice> guide;
  std::int32_t completion_tokens = 0;
  KvUsage kv;
  bool finished = false;
  bool has_left = false;  // a beam whose sequence has ended, and whose answer comes later

 private:
  bool append_text(TokenId token, RequestOutput& output);
  bool ends_by_guide(RequestOutput& output) const;
};

// Choice i runs as sequence first_sequence + i.
struct ActiveRequest {
  RequestId id{};
  Request request;
  OutputSink sink;
  SequenceId first_sequence{};
  UsedAdapter adapter = {};
  std::uint64_t seed = 0;
  std::vector<TokenId> stop_tokens;  // end-of-generation (unless ignored) and the request's own
  std::optional<grammar::TokenMask> allowed_tokens;  // with SamplingParams::allowed_token_ids
  std::vector<ActiveChoice> choices;
  bool owes_prompt_logprobs = false;              // they go out with choice 0's first output
  bool has_failed = false;                        // one of its choices
  bool takes_forced_runs = true;
  bool takes_drafts = false;                      // guesses may be checked in its steps
  std::int32_t num_drafts = 0, num_drafts_accepted = 0;
  bool is_kv_shadow = false;  // a learner looks on, and nothing of its KV becomes lossy
  bool is_kv_frozen = false;  // its policy is held back since it came
  std::vector<PositionLogprobs> prompt_logprobs;  // gathered until then
  std::int32_t num_unfinished = 0;
  std::optional<BeamSearch> beams;                 // with SamplingParams::beam_width; a choice is a slot
  std::int32_t num_search_tokens = 0;              // that beams have run
  std::optional<runtime::EmbeddingSum> embedding;  // with Request::pooling
  kv::BytesUse kv_bytes;                           // of the choice that had news last
  std::int32_t cached_tokens = 0;
  RequestCost cost;

  std::size_t choice_index_of(SequenceId sequence_id) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(sequence_id) - static_cast<std::int64_t>(first_sequence));
  }
  ActiveChoice& choice_of(SequenceId sequence_id) { return choices.at(choice_index_of(sequence_id)); }
  SequenceId sequence(std::size_t choice) const {
    return SequenceId{static_cast<std::int64_t>(first_sequence) + static_cast<std::int64_t>(choice)};
  }
};

// Begins the search of a request that asks for one. Its sampling becomes what beams need: their likeliest tokens.
void begin_beam_search(ActiveRequest& active);

// As the scheduler takes it. `eos_token_ids` are those that end this request.
sched::SequenceRequest sequence_request(const ActiveRequest& active, std::span<const TokenId> eos_token_ids,
                                        std::int32_t expected_cached_tokens, sched::TimePoint now);

// Those of the request's allowed_token_ids; nothing: all.
std::optional<grammar::TokenMask> allowed_tokens_of(const SamplingParams& params, std::int32_t vocab_size);

// The embedding, or the classifier's logits, of a request whose prompt is computed.
std::vector<float> embedding_of(const ActiveRequest& request, const model::PooledHead& head);

}  // namespace kvasir
