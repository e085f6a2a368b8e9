// Answers of /v1/rerank, in one piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "server/api/rank/pair_scores.h"
#include "server/api/rank/rerank_request.h"

namespace kvasir::server::api {

// The best document first; of equal scores the earlier one. Members of all who answer so: Jina and vLLM (model, usage,
// results), Cohere (id, meta). Or text-embeddings-inference's list.
class RerankFormat final : public AnswerFormat {
 public:
  struct Options {
    std::string id;
    std::string model;
    std::string api_version;  // of Cohere's that the path names
    RerankRequest request;
  };

  RerankFormat(Options options, PairScores scores) : options_(std::move(options)), scores_(std::move(scores)) {}

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  // Nobody can ask for a stream.
  void append_events(std::int32_t, const RequestOutput&, const Usage&, http::Events&) override {}
  void append_last_events(const Usage&, http::Events&) override {}

 private:
  struct Ranked {
    std::size_t index = 0;
    double score = 0.0;
  };
  std::vector<Ranked> ranked(const std::vector<ChoiceResult>& choices) const;
  void write_results(JsonWriter& json, const std::vector<Ranked>& results) const;

  const Options options_;
  const PairScores scores_;
};

}  // namespace kvasir::server::api
