#include "server/api/rank/pair_scores.h"

#include <fmt/format.h>

#include "engine/embedding_prompt.h"
#include "engine/pair_scoring.h"
#include "server/api/adapter_choice.h"

namespace kvasir::server::api {
namespace {

Request with_origin(const ApiContext& context, Request request, const http::ResponseWriter& writer, std::string_view id,
                    const PairOptions& options) {
  choose_adapter(context, options.model, request);
  request.tenant = writer.request().tenant.name;
  request.cache_namespace = request.tenant;
  request.priority = options.priority;
  request.client_id = id;
  return request;
}

std::unexpected<ApiError> too_long(const ApiError& error, const RankText& document, const PairOptions& options) {
  ApiError told = error;
  told.message = fmt::format("{}: {}", document.name, error.message);
  if (!options.truncates) told.message += "; truncate: true cuts documents";
  told.param = document.name;
  return std::unexpected(std::move(told));
}

// `prompt`: goes before the text.
ApiResult<Request> embedding_request(const ApiContext& context, const RankText& text, const std::string& prompt) {
  Request request;
  request.prompt_token_ids = context.engine.tokenizer()->encode(prompt + text.text);
  if (request.prompt_token_ids.empty()) return bad_request(text.name + " must not be empty", text.name);
  request.pooling = Pooling::kOfModel;
  request.sampling.max_tokens = 0;
  request.use_prefix_cache = false;
  KVASIR_CHECKED(check_context(request, context.engine.model_info().max_model_len_tokens, text.name));
  return request;
}

ApiResult<PairPlan> plan_embeddings(const ApiContext& context, const http::ResponseWriter& writer, std::string_view id,
                                    const std::vector<RankText>& queries, const std::vector<RankText>& documents,
                                    const std::vector<PairIndex>& pairs, const PairOptions& options) {
  PairPlan plan{.scoring = {.kind = PairScoringKind::kEmbeddings}, .requests = {}, .pairs = pairs};
  for (const auto& [texts, input_type] : {std::pair(&queries, "query"), std::pair(&documents, "document")}) {
    auto prompt = embedding_prompt(context.engine.model_info(), {.input_type = input_type});
    if (!prompt) return std::unexpected(to_api_error(std::move(prompt).error()));
    for (const RankText& text : *texts) {
      KVASIR_TRY(Request request, embedding_request(context, text, *prompt));
      plan.requests.push_back(with_origin(context, std::move(request), writer, id, options));
    }
  }
  for (PairIndex& pair : plan.pairs) pair.document += queries.size();
  return plan;
}

}  // namespace

ApiResult<PairPlan> plan_pairs(const ApiContext& context, const http::ResponseWriter& writer, std::string_view id,
                               const std::vector<RankText>& queries, const std::vector<RankText>& documents,
                               const std::vector<PairIndex>& pairs, const PairOptions& options) {
  const ModelInfo& info = context.engine.model_info();
  PairScoring scoring = pair_scoring_of(info, context.engine.tokenizer());
  if (scoring.kind == PairScoringKind::kNone) return bad_request(scoring.refusal, "model", "not_supported");
  if (scoring.kind == PairScoringKind::kEmbeddings) {
    return plan_embeddings(context, writer, id, queries, documents, pairs, options);
  }
  PairPlan plan{.scoring = scoring, .requests = {}, .pairs = pairs};
  const std::int32_t num_generated = scoring.kind == PairScoringKind::kTokens ? 1 : 0;
  for (const PairIndex& pair : pairs) {
    const RankText& document = documents[pair.document];
    Request request = pair_request(
        scoring, *context.engine.tokenizer(),
        {.query = queries[pair.query].text,
         .document = document.text,
         .instruction = options.instruction,
         .max_document_tokens = options.max_document_tokens,
         .max_prompt_tokens = options.truncates ? info.max_model_len_tokens - num_generated : 0});
    if (const ApiStatus fits = check_context(request, info.max_model_len_tokens, document.name); !fits) {
      return too_long(fits.error(), document, options);
    }
    plan.requests.push_back(with_origin(context, std::move(request), writer, id, options));
  }
  return plan;
}

std::vector<double> PairScores::of(const std::vector<ChoiceResult>& choices) const {
  std::vector<double> scores;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (scoring_.kind == PairScoringKind::kEmbeddings) {
      scores.push_back(cosine_of(choices[pairs_[i].query].embedding, choices[pairs_[i].document].embedding));
      continue;
    }
    const double logit = pair_logit(scoring_, choices[i].embedding, choices[i].logprobs);
    scores.push_back(is_raw_ ? logit : score_of_logit(logit));
  }
  return scores;
}

}  // namespace kvasir::server::api
