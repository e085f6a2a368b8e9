// The fields that chats and completions have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvasir/guide.h"
#include "kvasir/request.h"
#include "kvasir/sampling_params.h"
#include "search/answer_extractor.h"
#include "server/api/chosen_adapter.h"
#include "server/api/default_sampling.h"
#include "server/api/field.h"
#include "server/api/search_limits.h"

namespace kvasir::server::api {

struct GenerationRequest {
  std::string model;
  std::vector<LoraScale> lora = {};  // empty: the model's name says which adapter runs
  SamplingParams sampling = unset_sampling();  // read_request() fills in the model's defaults
  bool is_unbounded = false;  // it says that the answer has no bound
  bool stream = false;
  bool include_usage = false;  // one last chunk with the usage
  bool usage_in_every_chunk = false;
  bool has_stream_options = false;
  std::int32_t priority = 0;
  bool speculates = true;  // tokens may be guessed
  std::string cache_salt;
  std::optional<std::string> kv_policy;
  std::optional<std::string> kv_budget;  // as set_kv_budget() reads it
  std::optional<KvQuality> kv_quality;
  std::optional<double> kv_max_lost_share;  // 0 to 1
  bool kv_learn = true;
  std::optional<Guide> guide;
  std::vector<std::string> bad_words;
  std::int32_t best_of = 0;  // answers that are drawn, of which the n likeliest are given; 0: n
  bool use_beam_search = false;  // of num_beams(), instead of answers that are drawn
  bool is_search = false;        // `search` says so, and not `best_of`
  SearchLimits search_limits;
  std::optional<search::AnswerForm> vote = {};  // of these the ones that say what most say come first
};

inline std::int32_t num_beams(const GenerationRequest& request) { return std::max(request.sampling.n, request.best_of); }

// The rows that both endpoints take.
std::span<const Field<GenerationRequest>> generation_fields();

// Texts that end the answer: a string, or an array of them. Errors (400): what they must not be, the limits.
ApiStatus read_stop(const FieldInput& field, GenerationRequest& request);

// The most tokens of an answer; none: as many as the context holds. Errors (400): no such number.
ApiResult<std::optional<std::int32_t>> answer_bound_of(const FieldInput& field);

// Checks that the fields go together, and leaves out what only makes sense beside another. Errors (400).
ApiStatus check_generation_request(GenerationRequest& request, Warnings& warnings);

// The engine's request for one prompt. `tenant`: whose cached prefixes it may share, as long as it has no
// cache_salt; `kv` is what the request does not say.
Request engine_request(const GenerationRequest& request, const auth::Tenant& tenant, const KvParams& kv,
                       std::vector<TokenId> prompt_token_ids);

// Bounds the answer by what the prompt leaves of the context, and gives the warning that it did. Behind a
// prompt that fills the context nothing changes.
std::optional<std::string> cut_to_context(SamplingParams& sampling, std::int64_t num_prompt_tokens,
                                          std::int32_t max_model_len_tokens);

// Error (400, context_length_exceeded) with both numbers when prompt and completion do not fit.
ApiStatus check_context(const Request& request, std::int32_t max_model_len_tokens,
                        std::string_view prompt_field);

}  // namespace kvasir::server::api
