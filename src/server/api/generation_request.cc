#include "server/api/generation_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "engine/kv_params.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr double kMaxFloat = std::numeric_limits<float>::max();

using Sampling = SamplingParams;
constexpr auto kSampling = &GenerationRequest::sampling;

ApiStatus read_choices(const FieldInput& field, GenerationRequest& request) {
  const Limit& limit = field.limits.n;
  std::int64_t n = 0;
  if (!field.json.get_int64().get(n) && n > limit.max) return std::unexpected(beyond(limit, n, field.name));
  FieldInput choices = field;
  choices.range.max = static_cast<double>(limit.max);
  KVASIR_TRY(n, integer_of(choices));
  request.sampling.n = static_cast<std::int32_t>(n);
  return {};
}

// Any 64-bit integer: clients that pass -1 mean a seed too.
ApiStatus read_seed(const FieldInput& field, GenerationRequest& request) {
  if (field.json.is_uint64()) {
    request.sampling.seed = field.json.get_uint64().value();
    return {};
  }
  KVASIR_TRY(const std::int64_t seed, integer_of(field));
  request.sampling.seed = static_cast<std::uint64_t>(seed);
  return {};
}

// 0 and -1 both mean off.
ApiStatus read_top_k(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::int64_t top_k, integer_of(field));
  request.sampling.top_k = top_k < 0 ? 0 : static_cast<std::int32_t>(top_k);
  return {};
}

ApiStatus add_stop(const FieldInput& field, std::vector<std::string>& stops) {
  KVASIR_TRY(std::string stop, string_of(field));
  const auto size = std::ssize(stop);
  if (stop.empty()) return bad_request(field.name + " must not be empty", field.name);
  if (size > field.limits.stop_bytes.max) {
    return std::unexpected(beyond(field.limits.stop_bytes, size, field.name));
  }
  stops.push_back(std::move(stop));
  return {};
}

ApiStatus read_stop_token_ids(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const JsonArray ids, array_of(field));
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count > field.limits.logit_bias.max) {
    return bad_request(
        fmt::format("{}: {} ids, the limit is {}", field.name, count, field.limits.logit_bias.max),
        field.name, "limit_exceeded");
  }
  std::size_t index = 0;
  for (const JsonElement id : ids) {
    FieldInput item = field.at(index++, id);
    item.range = {0, kMaxInt32};
    KVASIR_TRY(const std::int64_t token, integer_of(item));
    request.sampling.stop_token_ids.push_back(static_cast<TokenId>(token));
  }
  return {};
}

ApiStatus read_logit_bias(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const JsonObject biases, object_of(field));
  const auto count = static_cast<std::int64_t>(biases.size());
  if (count > field.limits.logit_bias.max) {
    return std::unexpected(beyond(field.limits.logit_bias, count, field.name));
  }
  for (const auto [key, json] : biases) {
    TokenId token = kNoToken;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    const bool is_id = error == std::errc() && end == key.data() + key.size() && token >= 0;
    if (!is_id || key != fmt::format_int(token).c_str()) {  // "05" would be 5 given twice
      return bad_request(fmt::format("{}: keys must be token ids", field.name), field.name);
    }
    FieldInput bias = field.at(key, json);
    bias.range = field.range;
    KVASIR_TRY(const double value, number_of(bias));
    request.sampling.logit_bias.emplace_back(token, static_cast<float>(value));
  }
  return {};
}

ApiStatus read_stream_options(const FieldInput& field, GenerationRequest& request) {
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

ApiStatus read_kv_quality(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const std::string name, string_of(field));
  KvParams tried;
  if (const Status status = set_kv_quality(name, tried); !status) {
    return bad_request(field.name + " " + status.error().message, field.name);
  }
  request.kv_quality = tried.quality;
  return {};
}

ApiStatus read_response_format(const FieldInput& field, GenerationRequest&) {
  KVASIR_TRY(const JsonObject format, object_of(field));
  const auto type = find_member(format, "type");
  if (!type) return bad_request(field.name + ".type is missing", field.name);
  KVASIR_TRY(const std::string name, string_of(field.at("type", *type)));
  if (name == "text") return {};
  return not_supported(field.name, "anything but {\"type\":\"text\"}");
}

constexpr auto kUnsupported = &read_unsupported<GenerationRequest>;

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
     {0, kMaxInt32},
     "longest answer",
     read_integer<kSampling, &Sampling::max_tokens>},
    {"min_tokens",
     "integer",
     {0, kMaxInt32},
     "nothing stops the answer before",
     read_integer<kSampling, &Sampling::min_tokens>},
    {"temperature", "number", {0, 2}, "0 is greedy", read_number<kSampling, &Sampling::temperature>},
    {"top_p",
     "number",
     {.min = 0, .max = 1, .is_above_min = true},
     "1 is off",
     read_number<kSampling, &Sampling::top_p>},
    {"top_k", "integer", {-1, kMaxInt32}, "0 and -1 are off", read_top_k},
    {"min_p", "number", {0, 1}, "0 is off", read_number<kSampling, &Sampling::min_p>},
    {"repetition_penalty",
     "number",
     {.min = 0, .max = kMaxFloat, .is_above_min = true},
     "1 is off",
     read_number<kSampling, &Sampling::repetition_penalty>},
    {"presence_penalty", "number", {-2, 2}, "0 is off", read_number<kSampling, &Sampling::presence_penalty>},
    {"frequency_penalty",
     "number",
     {-2, 2},
     "0 is off",
     read_number<kSampling, &Sampling::frequency_penalty>},
    {"logit_bias", "object", {-100, 100}, "token id to what is added to its logit", read_logit_bias},
    {"seed", "integer", {}, "same seed, same tokens", read_seed},
    {"n", "integer", {1, kMaxInt32}, "how many answers", read_choices},
    {"stop", "string or array of strings", {}, "texts that end the answer and are left out", read_stop},
    {"stop_token_ids", "array of integers", {}, "tokens that end the answer", read_stop_token_ids},
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
    {"response_format", "object", {}, "only {\"type\":\"text\"} so far", read_response_format},

    {"user", "string", {}, "accepted", read_unused<string_of>},
    {"metadata", "object", {}, "accepted", read_unused<object_of>},
    {"safety_identifier", "string", {}, "accepted", read_unused<string_of>},
    {"service_tier", "string", {}, "accepted", read_unused<string_of>},
    {"request_id", "string", {}, "accepted; the answer has an id of its own", read_unused<string_of>},
    {"spaces_between_special_tokens", "boolean", {}, "accepted", read_unused<boolean_of>},

    {"structured_outputs", "object", {}, "not yet", kUnsupported},
    {"guided_json", "object", {}, "not yet", kUnsupported},
    {"guided_regex", "string", {}, "not yet", kUnsupported},
    {"guided_choice", "array", {}, "not yet", kUnsupported},
    {"guided_grammar", "string", {}, "not yet", kUnsupported},
    {"guided_whitespace_pattern", "string", {}, "not yet", kUnsupported},
    {"guided_decoding_backend", "string", {}, "accepted", read_unused<string_of>},
    {"json_schema", "object", {}, "not yet", kUnsupported},
    {"grammar", "string", {}, "not yet", kUnsupported},
    {"regex", "string", {}, "not yet", kUnsupported},
    {"ebnf", "string", {}, "not yet", kUnsupported},
    {"structural_tag", "string", {}, "not yet", kUnsupported},
    {"use_beam_search", "boolean", {}, "not yet", kUnsupported},
    {"bad_words", "array", {}, "not yet", kUnsupported},
    {"allowed_token_ids", "array", {}, "not yet", kUnsupported},
    {"truncate_prompt_tokens", "integer", {}, "not yet: a prompt is never cut silently", kUnsupported},
});

}  // namespace

ApiStatus read_stop(const FieldInput& field, GenerationRequest& request) {
  if (field.json.is_string()) return add_stop(field, request.sampling.stop);
  if (!field.json.is_array()) return wrong_type(field, "a string or an array of strings");
  const JsonArray stops = field.json.get_array().value();
  const auto count = static_cast<std::int64_t>(stops.size());
  if (count > field.limits.stops.max) return std::unexpected(beyond(field.limits.stops, count, field.name));
  std::size_t index = 0;
  for (const JsonElement stop : stops)
    KVASIR_CHECKED(add_stop(field.at(index++, stop), request.sampling.stop));
  return {};
}

std::span<const Field<GenerationRequest>> generation_fields() { return kFields; }

ApiStatus check_generation_request(const GenerationRequest& request) {
  if (request.has_stream_options && !request.stream) {
    return bad_request("stream_options is only for stream: true", "stream_options");
  }
  if (request.stream && request.sampling.prompt_logprobs) {
    return bad_request("prompt_logprobs is not available with stream: true", "prompt_logprobs");
  }
  return {};
}

Request engine_request(const GenerationRequest& request, const auth::Tenant& tenant, const KvParams& kv,
                       std::vector<TokenId> prompt_token_ids) {
  Request wanted;
  wanted.kv = kv;
  if (request.kv_policy) wanted.kv.policy = *request.kv_policy;
  if (request.kv_quality) wanted.kv.quality = *request.kv_quality;
  if (request.kv_budget) {
    wanted.kv.budget = 1.0;
    wanted.kv.budget_bytes = 0;
    static_cast<void>(set_kv_budget(*request.kv_budget, wanted.kv));  // read_kv_budget has tried it
  }
  wanted.prompt_token_ids = std::move(prompt_token_ids);
  wanted.sampling = request.sampling;
  wanted.cache_namespace =
      tenant.name.empty() ? request.cache_salt : tenant.key_id + "\n" + request.cache_salt;
  wanted.tenant = tenant.name;
  wanted.priority = request.priority;
  return wanted;
}

ApiStatus check_context(const Request& request, std::int32_t max_model_len_tokens,
                        std::string_view prompt_field) {
  const auto prompt = std::ssize(request.prompt_token_ids);
  const std::int64_t wanted = request.sampling.max_tokens.value_or(1);
  if (prompt + wanted <= max_model_len_tokens) return {};
  // Clients know the reason by these words: litellm, which then asks a model with more, by the first ones,
  // LangChain by "prompt is too long".
  std::string message = fmt::format(
      "This model's maximum context length is {} tokens, the prompt is too long", max_model_len_tokens);
  if (prompt >= max_model_len_tokens) {
    const bool is_of_list = prompt_field.ends_with(']');
    message += fmt::format(": {} has {}", is_of_list ? prompt_field : "it", prompt);
  } else {
    message += fmt::format(" for an answer of {} tokens: its {} make {} too many", wanted, prompt,
                           prompt + wanted - max_model_len_tokens);
  }
  return bad_request(std::move(message), std::string(prompt_field), "context_length_exceeded");
}

}  // namespace kvasir::server::api
