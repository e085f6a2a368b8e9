#include "server/api/llama/llama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr auto kLeftOut = &read_ignored<LlamaRequest>;

// An object with "prompt_string" is a text.
ApiResult<PlainPrompt> piece_of(const FieldInput& field) {
  if (field.json.is_object()) {
    KVASIR_TRY(const JsonObject object, object_of(field));
    if (const auto data = find_member(object, "multimodal_data"); data && !asks_for_nothing(*data)) {
      return bad_request(field.name + ".multimodal_data: the model reads text alone", field.name, "unsupported_content");
    }
    KVASIR_TRY(std::string text, required_string(field, object, "prompt_string"));
    return PlainPrompt{field.name, std::move(text)};
  }
  KVASIR_TRY(std::vector<PlainPrompt> prompts, prompts_of(field, field.limits.prompts));
  if (prompts.size() != 1) return bad_request(field.name + " must be a text or token ids", field.name);
  return std::move(prompts.front());
}

// Numbers and texts in one list are one prompt.
ApiResult<LlamaRequest::Prompt> mixed_prompt(const FieldInput& field, JsonArray list) {
  LlamaRequest::Prompt prompt;
  std::vector<TokenId> ids;
  const auto end_ids = [&] {
    if (!ids.empty()) prompt.push_back(PlainPrompt{field.name, std::exchange(ids, {})});
  };
  std::size_t index = 0;
  for (const JsonElement json : list) {
    FieldInput item = field.at(index++, json);
    if (json.is_string()) {
      end_ids();
      KVASIR_TRY(std::string text, string_of(item));
      prompt.push_back(PlainPrompt{item.name, std::move(text)});
      continue;
    }
    item.range = {0, kMaxInt32};
    KVASIR_TRY(const std::int64_t id, integer_of(item));
    ids.push_back(static_cast<TokenId>(id));
  }
  end_ids();
  return prompt;
}

bool has_numbers(JsonArray list) {
  return std::ranges::any_of(list, [](JsonElement json) { return json.is_number(); });
}

ApiStatus read_llama_prompt(const FieldInput& field, LlamaRequest& request) {
  if (!field.json.is_array()) {
    KVASIR_TRY(PlainPrompt piece, piece_of(field));
    request.prompts = {{std::move(piece)}};
    return {};
  }
  const JsonArray list = field.json.get_array().value();
  if (list.size() == 0) return bad_request(field.name + " must not be empty", field.name);
  if (has_numbers(list)) {
    KVASIR_TRY(LlamaRequest::Prompt prompt, mixed_prompt(field, list));
    request.prompts = {std::move(prompt)};
    return {};
  }
  const auto count = static_cast<std::int64_t>(list.size());
  if (count > field.limits.prompts.max) return std::unexpected(beyond(field.limits.prompts, count, field.name));
  request.is_list = true;
  for (const JsonElement json : list) {
    const FieldInput item = field.at(request.prompts.size(), json);
    LlamaRequest::Prompt prompt;
    if (json.is_array() && has_numbers(json.get_array().value())) {
      KVASIR_TRY(prompt, mixed_prompt(item, json.get_array().value()));
    } else {
      KVASIR_TRY(PlainPrompt piece, piece_of(item));
      prompt.push_back(std::move(piece));
    }
    request.prompts.push_back(std::move(prompt));
  }
  return {};
}

ApiStatus read_probs(const FieldInput& field, LlamaRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.n_probs = static_cast<std::int32_t>(count);
  return {};
}

ApiStatus read_post_sampling(const FieldInput& field, LlamaRequest& request) {
  KVASIR_TRY(request.has_post_sampling_probs, boolean_of(field));
  if (request.has_post_sampling_probs) field.warn(": probabilities are those before sampling, in this shape");
  return {};
}

ApiStatus read_biases(const FieldInput& field, LlamaRequest& request) {
  return read_token_biases(field, request.sampling, &request.text_biases);
}

ApiStatus read_response_fields(const FieldInput& field, LlamaRequest& request) {
  KVASIR_TRY(const JsonArray list, array_of(field));
  for (const JsonElement json : list) {
    KVASIR_TRY(std::string path, string_of(field.at(request.response_fields.size(), json)));
    request.response_fields.push_back(std::move(path));
  }
  return {};
}

ApiStatus read_chunks(const FieldInput& field, LlamaRequest& request) {
  KVASIR_TRY(const JsonArray list, array_of(field));
  for (const JsonElement json : list) {
    const FieldInput chunk = field.at(request.fim.chunks.size(), json);
    KVASIR_TRY(const JsonObject object, object_of(chunk));
    FimChunk made;
    KVASIR_TRY(made.text, required_string(chunk, object, "text"));
    if (const auto name = find_member(object, "filename")) {
      KVASIR_TRY(made.file_name, string_of(chunk.at("filename", *name)));
    }
    request.fim.chunks.push_back(std::move(made));
  }
  return {};
}

template <std::string FimParts::*Part>
ApiStatus read_part(const FieldInput& field, LlamaRequest& request) {
  KVASIR_TRY(request.fim.*Part, string_of(field));
  return {};
}

constexpr auto kSharedFields = std::to_array<Field<LlamaRequest>>({
    {"n_probs", "integer", {0, kMaxInt32}, "so many alternatives for each token, with their log probabilities", read_probs},
    {"post_sampling_probs",
     "boolean",
     {},
     "probabilities in place of their logarithms; they are those before sampling",
     read_post_sampling},
    {"return_tokens", "boolean", {}, "also the answer's token ids", read_boolean<&LlamaRequest::return_tokens>},
    {"timings_per_token", "boolean", {}, "times in every event of a stream", read_boolean<&LlamaRequest::timings_per_token>},
    {"response_fields",
     "array of strings",
     {},
     "these members of the last answer alone; \"timings/prompt_n\" is one of an object",
     read_response_fields},
    {"logit_bias",
     "object or array",
     {},
     "token id or text to what is added to its logit, or pairs of both; false: never",
     read_biases},
    {"n_indent", "integer", {}, "left out: lines have the indentation that the model gives them", kLeftOut},
    {"n_cmpl", "integer", {}, "left out: n says how many answers there are", read_ignored_but_one<LlamaRequest>},
    {"t_max_prompt_ms", "integer", {}, "left out: no time bounds an answer", kLeftOut},
    {"t_max_predict_ms", "integer", {}, "left out: no time bounds an answer", kLeftOut},
    {"penalty_last_n", "integer", {}, "left out: penalties see the whole text", kLeftOut},
});

template <std::size_t A, std::size_t B>
constexpr std::array<Field<LlamaRequest>, A + B> with_shared(const std::array<Field<LlamaRequest>, A>& own,
                                                             const std::array<Field<LlamaRequest>, B>& shared) {
  std::array<Field<LlamaRequest>, A + B> all{};
  std::ranges::copy(shared, std::ranges::copy(own, all.begin()).out);
  return all;
}

constexpr auto kCompletionFields = with_shared(
    std::to_array<Field<LlamaRequest>>({
        {"prompt",
         "string, object or array",
         {},
         "what the answer continues: a text, token ids, both in a list, or a list of prompts",
         read_llama_prompt},
    }),
    kSharedFields);

constexpr auto kInfillFields = with_shared(
    std::to_array<Field<LlamaRequest>>({
        {"input_prefix", "string", {}, "the text before the place", read_part<&FimParts::prefix>},
        {"input_suffix", "string", {}, "the text behind it", read_part<&FimParts::suffix>},
        {"input_extra",
         "array of objects",
         {},
         "parts of other files, each with text and filename; the last ones that fit are read",
         read_chunks},
        {"prompt", "string", {}, "the beginning of what is filled in", read_part<&FimParts::middle>},
    }),
    kSharedFields);

ApiResult<LlamaRequest> parse_llama(const JsonDocument& document, const Limits& limits, Warnings& warnings,
                                    std::span<const Field<LlamaRequest>> fields) {
  LlamaRequest request;
  KVASIR_CHECKED(read_fields(document.root(), generation_fields(), fields, limits, request, warnings));
  KVASIR_CHECKED(check_generation_request(request, warnings));
  if (request.n_probs > 0) request.sampling.logprobs = request.n_probs;
  return request;
}

}  // namespace

std::span<const Field<LlamaRequest>> llama_completion_fields() { return kCompletionFields; }
std::span<const Field<LlamaRequest>> infill_fields() { return kInfillFields; }

ApiResult<LlamaRequest> parse_llama_completion(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  KVASIR_TRY(LlamaRequest request, parse_llama(document, limits, warnings, kCompletionFields));
  if (request.prompts.empty()) return bad_request("prompt is missing", "prompt", "missing_parameter");
  return request;
}

ApiResult<LlamaRequest> parse_infill(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  for (const char* const name : {"input_prefix", "input_suffix"}) {
    if (!find_member(document.root(), name)) {
      return bad_request(fmt::format("{} is missing", name), name, "missing_parameter");
    }
  }
  return parse_llama(document, limits, warnings, kInfillFields);
}

}  // namespace kvasir::server::api
