// POST /v1/rerank: what the body says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/rank/rank_fields.h"

namespace kvasir::server::api {

struct RerankRequest : PairOptions {
  RankText query;
  std::vector<RankText> documents;          // not empty once parsed
  std::vector<std::string> document_json;   // as they came
  std::optional<std::int64_t> top_n;        // nothing: all
  bool return_documents = false;
  // text-embeddings-inference's form: `texts` for documents, and an answer that is a list.
  bool is_list = false;
};

std::span<const Field<RerankRequest>> rerank_fields();

// Errors (400).
ApiResult<RerankRequest> parse_rerank_request(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
