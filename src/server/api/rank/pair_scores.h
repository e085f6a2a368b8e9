// Pairs of texts on their way through the engine, whatever way the model scores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/pair_scoring.h"
#include "kvasir/request.h"
#include "server/api/answer_format.h"
#include "server/api/api_context.h"
#include "server/api_error.h"

namespace kvasir::server::api {

struct RankText {
  std::string name;  // where it stands in the request, for its errors: "documents[1]"
  std::string text;
};

// What both endpoints may say about how pairs are scored.
struct PairOptions {
  std::string model;
  std::string instruction;              // for prompts that have a place for it
  std::int32_t max_document_tokens = 0;  // a document is cut behind so many; 0: it is not
  bool truncates = false;                // documents are cut to what fits the context
  bool is_raw = false;                   // logits instead of scores
  std::int32_t priority = 0;
};

// A query and a document, by their places among the texts.
struct PairIndex {
  std::size_t query = 0, document = 0;
};

// The engine's requests for some pairs, and how their outputs become scores. Embeddings are made once for each text, so
// one request may serve several pairs.
struct PairPlan {
  PairScoring scoring;
  std::vector<Request> requests;
  std::vector<PairIndex> pairs;  // with embeddings: requests; else they are in the order of the requests
};

// Errors (400): the model scores no pairs, or a pair is beyond the context. Requires: each index has a text.
ApiResult<PairPlan> plan_pairs(const ApiContext& context, const http::ResponseWriter& writer, std::string_view id,
                               const std::vector<RankText>& queries, const std::vector<RankText>& documents,
                               const std::vector<PairIndex>& pairs, const PairOptions& options);

// The scores of the plan's pairs, from what its requests gave.
class PairScores {
 public:
  PairScores(PairScoring scoring, std::vector<PairIndex> pairs, bool is_raw)
      : scoring_(std::move(scoring)), pairs_(std::move(pairs)), is_raw_(is_raw) {}

  std::vector<double> of(const std::vector<ChoiceResult>& choices) const;

 private:
  const PairScoring scoring_;
  const std::vector<PairIndex> pairs_;
  const bool is_raw_;
};

}  // namespace kvasir::server::api
