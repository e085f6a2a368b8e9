// POST /v1/rerank and /v2/rerank
#include <memory>
#include <utility>
#include <vector>

#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/rank/rerank_format.h"
#include "server/api/rank/rerank_request.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_rerank(ApiContext& context, const Writer& writer, std::string api_version) {
  KVASIR_TRY(RerankRequest asked, read_request(context, *writer, parse_rerank_request));
  const std::string id = context.ids.next("rerank-");
  std::vector<PairIndex> pairs;
  for (std::size_t i = 0; i < asked.documents.size(); ++i) pairs.push_back({.query = 0, .document = i});
  KVASIR_TRY(PairPlan plan, plan_pairs(context, *writer, id, {asked.query}, asked.documents, pairs, asked));
  PairScores scores(std::move(plan.scoring), std::move(plan.pairs), asked.is_raw);
  RerankFormat::Options options{.id = id,
                                .model = context.model_name,
                                .api_version = std::move(api_version),
                                .request = std::move(asked)};
  auto format = std::make_unique<RerankFormat>(std::move(options), std::move(scores));
  Generation::start_scoring(context, writer, std::move(format), std::move(plan.requests));
  return {};
}

FieldTable rerank_table() {
  return {.title = "Fields", .own = rows_with_pair_fields(rerank_fields()), .shared = {}};
}

}  // namespace

extern const Endpoint kRerank = {
    .method = "POST",
    .pattern = "/v1/rerank",
    .meaning = "documents by how well they answer a query",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_rerank(context, writer, "1"), *writer); },
    .fields = rerank_table,
};

extern const Endpoint kRerankV2 = {
    .method = "POST",
    .pattern = "/v2/rerank",
    .meaning = "the same, as Cohere's newer clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_rerank(context, writer, "2"), *writer); },
    .fields =
        [] {
          return FieldTable{.title = {}, .own = rows_with_pair_fields(rerank_fields()), .shared = {},
                            .remark = "Fields are those of `/v1/rerank`."};
        },
};

}  // namespace kvasir::server::api
