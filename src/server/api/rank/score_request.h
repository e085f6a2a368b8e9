// POST /v1/score: what the body says.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "server/api/rank/rank_fields.h"

namespace kvasir::server::api {

struct ScoreRequest : PairOptions {
  std::vector<RankText> first, second;  // once parsed: not empty, and as many of each, or one first
};

std::span<const Field<ScoreRequest>> score_fields();

// Errors (400).
ApiResult<ScoreRequest> parse_score_request(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
