// The table of the fields that chats and completions have in common.
//
// Values that OpenAI or two of llama-server, vLLM and Ollama take are taken here too. Two more of that rule:
// stream_options without stream is left out, while top_logprobs without logprobs is refused.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "engine/kv_params.h"
#include "server/api/adapter_choice.h"
#include "server/api/generation_request.h"
#include "server/api/guide_fields.h"
#include "server/api/logit_bias.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr double kMaxFloat = std::numeric_limits<float>::max();
constexpr double kMostInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

using Sampling = SamplingParams;
constexpr auto kSampling = &GenerationRequest::sampling;

// Ollama and llama-server take any number, one beyond the ends as the nearest that means something.
ApiResult<double> nearest_number_of(const FieldInput& field) {
  FieldInput any = field;
  any.range = {};
  KVASIR_TRY(const double number, number_of(any));
  const double nearest = std::clamp(number, field.range.min, field.range.max);
  if (nearest != number) field.warn(fmt::format(": {} was taken as {}", number, nearest));
  return nearest;
}

template <auto Member>
ApiStatus read_nearest(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const double number, nearest_number_of(field));
  request.sampling.*Member = static_cast<float>(number);
  return {};
}

// -1 is no bound, as with llama-server and Ollama; more than any context is as much as there is.
ApiStatus read_max_tokens(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::optional<std::int32_t> bound, answer_bound_of(field));
  request.sampling.max_tokens = bound;
  request.is_unbounded = !bound;
  return {};
}

// How many answers of a prompt.
ApiResult<std::int32_t> answers_of(const FieldInput& field) {
  const Limit& limit = field.limits.n;
  FieldInput choices = field;
  choices.range = {};
  KVASIR_TRY(std::int64_t n, integer_of(choices));
  if (n > limit.max) return std::unexpected(beyond(limit, n, field.name));
  choices.range = {field.range.min, static_cast<double>(limit.max)};
  KVASIR_TRY(n, integer_of(choices));
  return static_cast<std::int32_t>(n);
}

ApiStatus read_choices(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(request.sampling.n, answers_of(field));
  return {};
}

ApiStatus read_best_of(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(request.best_of, answers_of(field));
  return {};
}

ApiStatus read_use_beam_search(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(request.use_beam_search, boolean_of(field));
  return {};
}

ApiStatus read_length_penalty(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const double penalty, number_of(field));
  request.sampling.length_penalty = static_cast<float>(penalty);
  return {};
}

// {"method": "vote", "n": 8, "answer": "number"}: best_of with another rule.
ApiStatus read_search(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const JsonObject members, object_of(field));
  std::string method = "best_of", answer = "number";
  if (const auto named = find_member(members, "method")) {
    KVASIR_TRY(method, string_of(field.at("method", *named)));
  }
  if (method != "vote" && method != "best_of" && method != "beam") {
    return bad_request(fmt::format("search.method must be vote, best_of or beam, is '{}'", printable(method)), "search.method");
  }
  constexpr std::string_view kMembers[] = {"method", "n", "answer", "max_total_tokens", "max_ms"};
  for (const auto& [name, value] : members) {
    if (std::ranges::find(kMembers, name) != std::ranges::end(kMembers)) continue;
    return bad_request(fmt::format("search.{} is unknown; there are {}", printable(name), fmt::join(kMembers, ", ")), "search");
  }
  request.use_beam_search = method == "beam";
  const auto count = find_member(members, "n");
  if (!count) return bad_request("search.n says how many answers are drawn", "search.n");
  FieldInput drawn = field.at("n", *count);
  drawn.range = {1, kMaxInt32};
  KVASIR_TRY(request.best_of, answers_of(drawn));
  request.is_search = true;
  if (const auto form = find_member(members, "answer")) {
    KVASIR_TRY(answer, string_of(field.at("answer", *form)));
  }
  if (answer != "number" && answer != "text") {
    return bad_request(fmt::format("search.answer must be number or text, is '{}'", printable(answer)), "search.answer");
  }
  if (const auto tokens = find_member(members, "max_total_tokens")) {
    FieldInput total = field.at("max_total_tokens", *tokens);
    total.range = {1, kMaxInt32};
    KVASIR_TRY(request.search_limits.max_total_tokens, integer_of(total));
  }
  if (const auto ms = find_member(members, "max_ms")) {
    FieldInput time = field.at("max_ms", *ms);
    time.range = {1, kMaxInt32};
    KVASIR_TRY(request.search_limits.max_ms, integer_of(time));
  }
  if (method == "vote") request.vote = answer == "number" ? search::AnswerForm::kNumber : search::AnswerForm::kText;
  return {};
}

ApiStatus read_min_tokens(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::int64_t least, integer_of(field));
  request.sampling.min_tokens = static_cast<std::int32_t>(std::max<std::int64_t>(least, 0));
  return {};
}

// Any 64-bit integer; -1 is a random one, as with vLLM and llama-server.
ApiStatus read_seed(const FieldInput& field, GenerationRequest& request) {
  if (field.json.is_uint64()) {
    request.sampling.seed = field.json.get_uint64().value();
    return {};
  }
  if (field.json.is_double() && field.json.get_double().value() > kMostInteger) {
    return bad_request(fmt::format("{} must be an integer of at most 64 bits, up to {}", field.name,
                                   std::numeric_limits<std::uint64_t>::max()),
                       field.name);
  }
  KVASIR_TRY(const std::int64_t seed, integer_of(field));
  request.sampling.seed.reset();
  if (seed != -1) request.sampling.seed = static_cast<std::uint64_t>(seed);
  return {};
}

// 0 and whatever is below mean off.
ApiStatus read_top_k(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::int64_t top_k, integer_of(field));
  request.sampling.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(top_k, 0, kMostTokens));
  return {};
}

ApiStatus add_stop(const FieldInput& field, std::vector<std::string>& stops) {
  if (field.json.is_null()) return {};
  KVASIR_TRY(std::string stop, string_of(field));
  const auto size = std::ssize(stop);
  if (stop.empty()) return {};  // stops nothing
  if (size > field.limits.stop_bytes.max) {
    return std::unexpected(beyond(field.limits.stop_bytes, size, field.name));
  }
  stops.push_back(std::move(stop));
  return {};
}

template <auto Member>
ApiStatus read_token_list(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const JsonArray ids, array_of(field));
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count > field.limits.logit_bias.max) {
    return bad_request(
        fmt::format("{}: {} ids, the limit is {} (--{})", field.name, count, field.limits.logit_bias.max,
                    field.limits.logit_bias.flag),
        field.name, "limit_exceeded");
  }
  std::size_t index = 0;
  for (const JsonElement id : ids) {
    FieldInput item = field.at(index++, id);
    item.range = {0, kMaxInt32};
    KVASIR_TRY(const std::int64_t token, integer_of(item));
    (request.sampling.*Member).push_back(static_cast<TokenId>(token));
  }
  return {};
}

ApiStatus read_allowed_tokens(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  return read_token_list<&Sampling::allowed_token_ids>(field, request);
}

ApiStatus read_logit_bias(const FieldInput& field, GenerationRequest& request) {
  return read_token_biases(field, request.sampling, nullptr);
}

// Ollama and llama-server take 0 and less, which would turn every repetition around: off.
ApiStatus read_repetition_penalty(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const double number, number_of(field));
  const auto penalty = static_cast<float>(number);
  if (penalty <= 0) field.warn(fmt::format(": {} was taken as 1, which is off", number));
  request.sampling.repetition_penalty = penalty <= 0 ? 1.0f : penalty;
  return {};
}

ApiStatus read_stream_options(const FieldInput& field, GenerationRequest& request) {
  if (field.json.is_array() && asks_for_nothing(field.json)) return {};  // PHP's {}
  KVASIR_TRY(const JsonObject options, object_of(field));
  request.has_stream_options = true;
  if (const auto include = find_member(options, "include_usage")) {
    KVASIR_TRY(request.include_usage, boolean_of(field.at("include_usage", *include)));
  }
  if (const auto continuous = find_member(options, "continuous_usage_stats")) {
    KVASIR_TRY(request.usage_in_every_chunk, boolean_of(field.at("continuous_usage_stats", *continuous)));
  }
  return {};
}

ApiStatus read_prompt_logprobs(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.sampling.prompt_logprobs = static_cast<std::int32_t>(count);
  return {};
}

ApiStatus read_cache_salt(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(request.cache_salt, string_of(field));
  if (request.cache_salt.empty()) return bad_request(field.name + " must not be empty", field.name);
  return {};
}

// A share, a number of bytes, or either as a text with its unit.
ApiStatus read_kv_budget(const FieldInput& field, GenerationRequest& request) {
  std::string text;
  if (field.json.is_string()) {
    KVASIR_TRY(text, string_of(field));
  } else if (!field.json.is_number()) {
    return wrong_type(field, "a number or a string");
  } else {
    KVASIR_TRY(const double number, number_of(field));
    text = fmt::format("{}", number);
  }
  KvParams tried;
  if (const Status status = set_kv_budget(text, tried); !status) {
    return bad_request(field.name + " " + status.error().message, field.name);
  }
  request.kv_budget = std::move(text);
  return {};
}

ApiStatus read_kv_policy(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(request.kv_policy, string_of(field));
  const std::vector<std::string> names = kv_policy_names();
  if (std::ranges::find(names, *request.kv_policy) != names.end()) return {};
  return bad_request(fmt::format("{} must be one of {}, got '{}'", field.name, fmt::join(names, ", "),
                                 printable_line(*request.kv_policy)),
                     field.name);
}

ApiStatus read_speculate(const FieldInput& field, GenerationRequest& request) {
  if (field.json.is_bool()) {
    request.speculates = field.json.get_bool().value();
    return {};
  }
  const std::string_view word = field.json.is_string() ? field.json.get_string().value() : std::string_view();
  request.speculates = word != "off";
  if (word != "auto" && word != "off") warn_ignored(field, "it must be \"auto\", \"off\" or a boolean");
  return {};
}

ApiStatus read_lora(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(request.lora, lora_scales_of(field));
  return {};
}

ApiStatus read_kv_quality(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::string name, string_of(field));
  KvParams tried;
  if (const Status status = set_kv_quality(name, tried); !status) {
    return bad_request(field.name + " " + status.error().message, field.name);
  }
  request.kv_quality = tried.quality;
  return {};
}

constexpr auto kUnsupported = &read_unsupported<GenerationRequest>;
constexpr auto kLeftOut = &read_ignored<GenerationRequest>;
constexpr std::string_view kRefused = "refused: not there yet";
constexpr std::string_view kNoSampler = "left out: no such sampler is here";

constexpr auto kFields = std::to_array<Field<GenerationRequest>>({
    {"model",
     "string",
     {},
     "which model answers; absent: the one there is",
     read_string<&GenerationRequest::model>},
    {"stream", "boolean", {}, "answer in pieces as they are made", read_boolean<&GenerationRequest::stream>},
    {"stream_options", "object", {}, "include_usage, continuous_usage_stats", read_stream_options},
    {"max_tokens",
     "integer",
     {-2, kMostInteger},
     "longest answer, at most what the context has left; -1 and -2: all of that",
     read_max_tokens},
    {"n_predict", "integer", {-2, kMostInteger}, "another name for max_tokens", read_max_tokens},
    {"min_tokens",
     "integer",
     {-kMaxInt32, kMaxInt32},
     "nothing stops the answer before",
     read_min_tokens},
    {"temperature", "number", {0, kMaxFloat}, "0 is greedy", read_nearest<&Sampling::temperature>},
    {"top_p", "number", {0, 1}, "1 is off, 0 the most likely token", read_nearest<&Sampling::top_p>},
    {"top_k", "integer", {-kMostInteger, kMostInteger}, "0 and less are off", read_top_k},
    {"min_p", "number", {0, 1}, "0 is off", read_nearest<&Sampling::min_p>},
    {"repetition_penalty",
     "number",
     {-kMaxFloat, kMaxFloat},
     "1 is off, and so are 0 and less",
     read_repetition_penalty},
    {"repeat_penalty",
     "number",
     {-kMaxFloat, kMaxFloat},
     "another name for repetition_penalty",
     read_repetition_penalty},
    {"presence_penalty", "number", {-2, 2}, "0 is off", read_nearest<&Sampling::presence_penalty>},
    {"frequency_penalty", "number", {-2, 2}, "0 is off", read_nearest<&Sampling::frequency_penalty>},
    {"logit_bias", "object or array", {}, "token id to -100..100, added to its logit, or pairs of both", read_logit_bias},
    {"seed", "integer", {}, "same seed, same tokens; -1: a random one", read_seed},
    {"n", "integer", {1, kMaxInt32}, "how many answers", read_choices},
    {"best_of", "integer", {1, kMaxInt32}, "draw as many answers, n to the limit of choices, and give the n of the best mean log-probability; not with `stream`. `usage.search_tokens` counts all", read_best_of},
    {"use_beam_search", "boolean", {}, "the `n` likeliest answers that a search of as many beams finds (of `best_of`, where that is more), instead of drawn ones; a stream has them whole. `usage.search_tokens` counts all. Not with a schema or a KV budget", read_use_beam_search},
    {"length_penalty", "number", {-10, 10}, "of `use_beam_search`: scores are summed log-probabilities over length ^ length_penalty", read_length_penalty},
    {"search", "object", {}, "draw `n` answers and give the best: `method` best_of (mean log-probability), vote (what most say; `answer` number: the last number of each, or text: all of it) or beam (as `use_beam_search`). With `max_total_tokens` and `max_ms` what is best by then is given; a vote ends when the rest will hardly change it. The answer has `search.ended_by`", read_search},
    {"stop", "string or array of strings", {}, "texts that end the answer and are left out", read_stop},
    {"stop_token_ids", "array of integers", {}, "tokens that end the answer", read_token_list<&Sampling::stop_token_ids>},
    {"ignore_eos",
     "boolean",
     {},
     "the model's own end does not count",
     read_boolean<kSampling, &Sampling::ignore_eos>},
    {"include_stop_str_in_output",
     "boolean",
     {},
     "leave the stop text in",
     read_boolean<kSampling, &Sampling::include_stop_str_in_output>},
    {"skip_special_tokens",
     "boolean",
     {},
     "false shows control tokens as text",
     read_boolean<kSampling, &Sampling::skip_special_tokens>},
    {"prompt_logprobs",
     "integer",
     {0, kMaxInt32},
     "alternatives for each token of the prompt",
     read_prompt_logprobs},
    {"priority",
     "integer",
     {-kMaxInt32, kMaxInt32},
     "lower runs first; below 0 before the key's others, in their places",
     read_integer<&GenerationRequest::priority>},
    {"cache_salt", "string", {}, "requests share cached prefixes only under one salt", read_cache_salt},
    {"kv_policy",
     "string",
     {},
     "what becomes of keys and values that later tokens have seen",
     read_kv_policy},
    {"kv_budget",
     "number or string",
     {},
     "what the policy may keep of their bytes in f16: a share (0.3), or bytes (\"64MiB\")",
     read_kv_budget},
    {"kv_quality", "string", {}, "how far it may go: exact, gate, best_effort", read_kv_quality},
    {"kv_max_lost_share",
     "number",
     {0, 1},
     "instead of `kv_quality`'s: the most of a head's attention that later tokens may be expected to pay to what is dropped",
     read_number<&GenerationRequest::kv_max_lost_share>},
    {"kv_learn", "boolean", {}, "false: nothing is learned from this request, whatever `--kv-learn` says", read_boolean<&GenerationRequest::kv_learn>},
    {"response_format", "object", {}, "text, json_object, json_schema with its schema, or structural_tag", read_response_format},

    {"lora", "array", {}, "which adapter answers, and how much of it: objects with `id` and `scale`, as llama-server has them", read_lora},

    {"user", "string", {}, "accepted", read_unused<string_of>},
    {"metadata", "object", {}, "accepted", read_unused<object_of>},
    {"safety_identifier", "string", {}, "accepted", read_unused<string_of>},
    {"prompt_cache_key", "string", {}, "accepted; prefixes are cached anyway", read_unused<string_of>},
    {"prompt_cache_options", "object", {}, "accepted; prefixes are cached anyway", read_unused<object_of>},
    {"prompt_cache_retention", "string", {}, "accepted; prefixes are cached anyway", read_unused<string_of>},
    {"speculate", "boolean or string", {}, "`false` or `\"off\"`: no tokens are guessed for it; the answer is the same", read_speculate},
    {"cache_prompt", "boolean", {}, "accepted; prefixes are cached anyway", read_unused<boolean_of>},
    {"request_id", "string", {}, "accepted; the answer has an id of its own", read_unused<string_of>},
    {"spaces_between_special_tokens", "boolean", {}, "accepted", read_unused<boolean_of>},
    {"guided_decoding_backend", "string", {}, "accepted", read_unused<string_of>},
    {"min_keep", "integer", {}, "accepted; one token is always kept", read_unused<integer_of>},
    {"early_stopping", "boolean", {}, "accepted; a beam search ends when nothing better can come", read_unused<boolean_of>},
    {"store", "boolean", {}, "left out: only responses are stored", kLeftOut},
    {"service_tier",
     "string",
     {},
     "left out: there is one tier",
     read_ignored_unless<"auto", "default", "standard_only">},
    {"moderation", "object", {}, "left out: no answer is judged", kLeftOut},
    {"return_token_ids", "boolean", {}, "left out: only /v1/generate gives token ids", kLeftOut},
    {"return_tokens_as_token_ids", "boolean", {}, "left out: tokens come as text", kLeftOut},
    {"return_tokens", "boolean", {}, "left out: only /v1/generate gives token ids", kLeftOut},
    {"timings_per_token", "boolean", {}, "left out: the access log has the times", kLeftOut},
    {"return_progress", "boolean", {}, "left out: the progress of a prompt is not told", kLeftOut},
    {"n_probs", "integer", {}, "left out: ask for logprobs", kLeftOut},
    {"typical_p", "number", {}, kNoSampler, read_ignored_but_one},
    {"top_n_sigma", "number", {}, kNoSampler, kLeftOut},
    {"xtc_probability", "number", {}, kNoSampler, kLeftOut},
    {"xtc_threshold", "number", {}, kNoSampler, kLeftOut},
    {"dynatemp_range", "number", {}, kNoSampler, kLeftOut},
    {"dynatemp_exponent", "number", {}, kNoSampler, read_ignored_but_one},
    {"mirostat", "integer", {}, kNoSampler, kLeftOut},
    {"mirostat_tau", "number", {}, kNoSampler, kLeftOut},
    {"mirostat_eta", "number", {}, kNoSampler, kLeftOut},
    {"dry_multiplier", "number", {}, kNoSampler, kLeftOut},
    {"dry_base", "number", {}, kNoSampler, kLeftOut},
    {"dry_allowed_length", "integer", {}, kNoSampler, kLeftOut},
    {"dry_penalty_last_n", "integer", {}, kNoSampler, kLeftOut},
    {"dry_sequence_breakers", "array", {}, kNoSampler, kLeftOut},
    {"samplers", "array", {}, "left out: the order is fixed", kLeftOut},
    {"repeat_last_n", "integer", {}, "left out: penalties see the whole text", kLeftOut},
    {"id_slot", "integer", {}, "left out: there are no slots", kLeftOut},
    {"n_keep", "integer", {}, "left out: a context is never shifted", kLeftOut},
    {"truncate_prompt_tokens", "integer", {}, "left out: a prompt is never cut", kLeftOut},
    {"kv_transfer_params", "object", {}, "left out: there is one server", kLeftOut},
    {"vllm_xargs", "object", {}, "left out: they are for extensions", kLeftOut},

    {"structured_outputs", "object", {}, "json, regex, choice, grammar, json_object or structural_tag", read_structured_outputs},
    {"guided_json", "object or string", {}, "the answer satisfies this JSON Schema", read_guided_json},
    {"guided_regex", "string", {}, "the whole answer matches it", read_guided_regex},
    {"guided_choice", "array", {}, "the answer is one of these texts", read_guided_choice},
    {"guided_grammar", "string", {}, "the answer is of this grammar, in XGrammar's notation", read_guided_grammar},
    {"guided_whitespace_pattern", "string", {}, "left out: the form decides about blanks", kLeftOut},
    {"json_schema", "object", {}, "another name for guided_json", read_guided_json},
    {"grammar", "string", {}, "the answer is of this grammar, in GBNF", read_gbnf},
    {"regex", "string", {}, "another name for guided_regex", read_guided_regex},
    {"ebnf", "string", {}, "another name for guided_grammar", read_guided_grammar},
    {"structural_tag", "object or string", {}, "text with parts between marks", read_structural_tag},
    {"logits_processors", "array", {}, kRefused, kUnsupported},
    {"bad_words", "array of strings", {}, "texts that do not occur in the answer; not beside a schema", read_bad_words},
    {"allowed_token_ids",
     "array of integers",
     {},
     "no other token is chosen, ends among them; not beside another form",
     read_allowed_tokens},
});

}  // namespace

ApiStatus read_stop(const FieldInput& field, GenerationRequest& request) {
  if (field.json.is_string()) return add_stop(field, request.sampling.stop);
  if (field.json.is_object() && asks_for_nothing(field.json)) return {};  // Lua's []
  if (!field.json.is_array()) return wrong_type(field, "a string or an array of strings");
  const JsonArray stops = field.json.get_array().value();
  const auto count = static_cast<std::int64_t>(stops.size());
  if (count > field.limits.stops.max) return std::unexpected(beyond(field.limits.stops, count, field.name));
  std::size_t index = 0;
  for (const JsonElement stop : stops)
    KVASIR_CHECKED(add_stop(field.at(index++, stop), request.sampling.stop));
  return {};
}

ApiResult<std::optional<std::int32_t>> answer_bound_of(const FieldInput& field) {
  // is_uint64() would hold for every whole number that is not negative.
  const bool is_beyond_int64 = field.json.type() == simdjson::dom::element_type::UINT64 ||
                               (field.json.is_double() && field.json.get_double().value() > kMostInteger);
  if (is_beyond_int64) return static_cast<std::int32_t>(kMostTokens);
  KVASIR_TRY(const std::int64_t bound, integer_of(field));
  if (bound < 0) return std::nullopt;
  return static_cast<std::int32_t>(std::min(bound, kMostTokens));
}

std::span<const Field<GenerationRequest>> generation_fields() { return kFields; }

}  // namespace kvasir::server::api
