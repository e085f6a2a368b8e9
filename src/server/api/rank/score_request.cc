#include "server/api/rank/score_request.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace kvasir::server::api {
namespace {

template <std::vector<RankText> ScoreRequest::*Texts>
ApiStatus read_texts(const FieldInput& field, ScoreRequest& request) {
  if (!(request.*Texts).empty()) {
    return bad_request(fmt::format("{} is a second name of a field that is given", field.name), field.name);
  }
  KVASIR_TRY(request.*Texts, rank_texts_of(field));
  return {};
}

constexpr auto kReadFirst = &read_texts<&ScoreRequest::first>;
constexpr auto kReadSecond = &read_texts<&ScoreRequest::second>;

constexpr auto kScoreFields = std::to_array<Field<ScoreRequest>>({
    {"text_1", "string or array", {}, "a query for all texts, or one for each", kReadFirst},
    {"text_2", "string or array", {}, "the texts that answer it", kReadSecond},
    {"queries", "string or array", {}, "another name for text_1", kReadFirst},
    {"documents", "string or array", {}, "another name for text_2", kReadSecond},
    {"items", "string or array", {}, "another name for text_2", kReadSecond},
    {"data_1", "string or array", {}, "another name for text_1", kReadFirst},
    {"data_2", "string or array", {}, "another name for text_2", kReadSecond},
});

}  // namespace

std::span<const Field<ScoreRequest>> score_fields() { return kScoreFields; }

ApiResult<ScoreRequest> parse_score_request(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  ScoreRequest request;
  KVASIR_CHECKED(read_fields(document.root(), pair_fields(), score_fields(), limits, request, warnings));
  if (request.first.empty()) return bad_request("text_1 is missing", "text_1", "missing_parameter");
  if (request.second.empty()) return bad_request("text_2 is missing", "text_2", "missing_parameter");
  if (request.first.size() != 1 && request.first.size() != request.second.size()) {
    return bad_request(fmt::format("text_1 must have one text, or as many as text_2, {}, got {}",
                                   request.second.size(), request.first.size()),
                       "text_1");
  }
  return request;
}

}  // namespace kvasir::server::api
