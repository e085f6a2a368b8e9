// POST /v1/score
#include <fmt/format.h>

#include <array>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/rank/score_request.h"

namespace kvasir::server::api {
namespace {

class ScoreFormat final : public AnswerFormat {
 public:
  ScoreFormat(std::string id, std::string model, PairScores scores)
      : id_(std::move(id)), model_(std::move(model)), scores_(std::move(scores)) {}

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override {
    std::string body;
    JsonWriter json(body);
    json.begin_object().member("id", id_).member("object", "list");
    json.member("created", static_cast<std::int64_t>(std::time(nullptr))).member("model", model_);
    json.key("data").begin_array();
    std::int64_t index = 0;
    for (const double score : scores_.of(choices)) {
      json.begin_object().member("index", index++).member("object", "score");
      json.member("score", static_cast<float>(score)).end_object();
    }
    json.end_array().key("usage").begin_object();
    json.member("prompt_tokens", usage.prompt_tokens).member("total_tokens", usage.prompt_tokens);
    json.member("completion_tokens", 0).end_object().end_object();
    return body;
  }
  void append_events(std::int32_t, const RequestOutput&, const Usage&, http::Events&) override {}
  void append_last_events(const Usage&, http::Events&) override {}

 private:
  const std::string id_, model_;
  const PairScores scores_;
};

ApiStatus start_score(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const ScoreRequest asked, read_request(context, *writer, parse_score_request));
  const std::string id = context.ids.next("score-");
  std::vector<PairIndex> pairs;
  for (std::size_t i = 0; i < asked.second.size(); ++i) {
    pairs.push_back({.query = asked.first.size() == 1 ? 0 : i, .document = i});
  }
  KVASIR_TRY(PairPlan plan, plan_pairs(context, *writer, id, asked.first, asked.second, pairs, asked));
  PairScores scores(std::move(plan.scoring), std::move(plan.pairs), asked.is_raw);
  auto format = std::make_unique<ScoreFormat>(id, context.model_name, std::move(scores));
  Generation::start_scoring(context, writer, std::move(format), std::move(plan.requests));
  return {};
}

}  // namespace

extern const Endpoint kScore = {
    .method = "POST",
    .pattern = "/v1/score",
    .meaning = "how well each of several texts answers another",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_score(context, writer), *writer); },
    .fields =
        [] {
          return FieldTable{.title = "Fields", .own = rows_with_pair_fields(score_fields()), .shared = {}};
        },
};

}  // namespace kvasir::server::api
