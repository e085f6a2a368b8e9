#include "server/api/rank/rank_fields.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace kvasir::server::api {
namespace {

constexpr double kMaxRankInt32 = std::numeric_limits<std::int32_t>::max();
constexpr auto kLeftOutOfPairs = &read_ignored<PairOptions>;

ApiStatus read_raw(const FieldInput& field, PairOptions& options) {
  KVASIR_TRY(options.is_raw, boolean_of(field));
  return {};
}

ApiStatus read_use_activation(const FieldInput& field, PairOptions& options) {
  KVASIR_TRY(const bool is_used, boolean_of(field));
  options.is_raw = !is_used;
  return {};
}

// Also Cohere's words for an end that is cut off.
ApiStatus read_truncate(const FieldInput& field, PairOptions& options) {
  if (field.json.is_string()) {
    const std::string_view word = field.json.get_string().value();
    if (word == "NONE" || word == "none" || word.empty()) return {};
    if (word == "END" || word == "end") {
      options.truncates = true;
      return {};
    }
    return bad_request(fmt::format("{} must be a boolean, \"NONE\" or \"END\"", field.name), field.name);
  }
  KVASIR_TRY(options.truncates, boolean_of(field));
  return {};
}

constexpr auto kPairFields = std::to_array<Field<PairOptions>>({
    {"model", "string", {}, "whose scores; absent: those of the one there is", read_string<&PairOptions::model>},
    {"instruction",
     "string",
     {},
     "the task, for models whose prompt has a place for it",
     read_string<&PairOptions::instruction>},
    {"max_tokens_per_doc",
     "integer",
     {0, kMaxRankInt32},
     "a document is cut behind so many tokens; 0: it is not",
     read_integer<&PairOptions::max_document_tokens>},
    {"truncate",
     "boolean or string",
     {},
     "true or \"END\": documents are cut to what fits the context; else such a request is refused",
     read_truncate},
    {"truncation", "boolean or string", {}, "another name for truncate", read_truncate},
    {"use_activation", "boolean", {}, "false: logits instead of scores from 0 to 1", read_use_activation},
    {"raw_scores", "boolean", {}, "true: the same", read_raw},
    {"priority",
     "integer",
     {-kMaxRankInt32, kMaxRankInt32},
     "lower runs first; negative values reorder only this key's own requests",
     read_integer<&PairOptions::priority>},
    {"user", "string", {}, "accepted", read_unused<string_of>},
    {"client_name", "string", {}, "accepted", read_unused<string_of>},
    {"request_id", "string", {}, "accepted; the answer has an id of its own", read_unused<string_of>},
    {"max_chunks_per_doc", "integer", {}, "left out: a document is one piece", kLeftOutOfPairs},
    {"truncate_prompt_tokens", "integer", {}, "left out: max_tokens_per_doc and truncate cut", kLeftOutOfPairs},
    {"truncation_direction", "string", {}, "left out: a document's end is cut", kLeftOutOfPairs},
    {"mm_processor_kwargs", "object", {}, "left out: there are no images", kLeftOutOfPairs},
});

}  // namespace

std::span<const Field<PairOptions>> pair_fields() { return kPairFields; }

ApiStatus check_num_texts(const FieldInput& field, std::int64_t count) {
  Limit limit = field.limits.inputs;
  limit.what = "texts in one request";
  return count > limit.max ? ApiStatus(std::unexpected(beyond(limit, count, field.name))) : ApiStatus();
}

ApiResult<RankText> rank_text_of(const FieldInput& field) {
  if (field.json.is_string()) {
    KVASIR_TRY(std::string text, string_of(field));
    return RankText{field.name, std::move(text)};
  }
  if (!field.json.is_object()) return wrong_type(field, "a string or an object with a text");
  KVASIR_TRY(const JsonObject object, object_of(field));
  KVASIR_TRY(std::string text, required_string(field, object, "text"));
  return RankText{field.name, std::move(text)};
}

ApiResult<std::vector<RankText>> rank_texts_of(const FieldInput& field) {
  std::vector<RankText> texts;
  if (!field.json.is_array()) {
    KVASIR_TRY(RankText text, rank_text_of(field));
    texts.push_back(std::move(text));
    return texts;
  }
  const JsonArray list = field.json.get_array().value();
  const auto count = static_cast<std::int64_t>(list.size());
  if (count == 0) return bad_request(field.name + " must not be empty", field.name);
  KVASIR_CHECKED(check_num_texts(field, count));
  for (const JsonElement json : list) {
    KVASIR_TRY(RankText text, rank_text_of(field.at(texts.size(), json)));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace kvasir::server::api
