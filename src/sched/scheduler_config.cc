#include "sched/scheduler_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::sched {
namespace {

Status check_runs_whole(const SequenceRequest& request, std::int32_t max_num_batched_tokens) {
  if (request.stop.max_tokens != 0) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_tokens must be 0, as tokens that see later ones generate none, got {}",
                                  request.stop.max_tokens),
                      "max_tokens");
  }
  const auto num_tokens = std::ssize(request.prompt_token_ids);
  if (num_tokens <= max_num_batched_tokens) return {};
  return make_error(ErrorKind::kUnmet,
                    fmt::format("the prompt must have at most {} tokens, as many as a step, got {}",
                                max_num_batched_tokens, num_tokens),
                    "prompt");
}

}  // namespace

Status SchedulerConfig::validate() const {
  if (max_num_seqs < 1) {
    return make_error(ErrorKind::kUsage, fmt::format("max_num_seqs must be at least 1, got {}", max_num_seqs),
                      "max_num_seqs");
  }
  if (max_num_batched_tokens < max_num_seqs) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_num_batched_tokens must be at least max_num_seqs ({}), got {}",
                                  max_num_seqs, max_num_batched_tokens),
                      "max_num_batched_tokens");
  }
  if (max_chunk_tokens < 0) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_chunk_tokens must be at least 0, got {}", max_chunk_tokens),
                      "max_chunk_tokens");
  }
  if (!(max_step_ms >= 0.0)) {
    return make_error(ErrorKind::kUsage, fmt::format("max_step_ms must be at least 0, got {}", max_step_ms),
                      "max_step_ms");
  }
  return {};
}

std::int32_t SchedulerConfig::effective_chunk_tokens() const {
  if (max_chunk_tokens == 0) return max_num_batched_tokens;
  return std::min(max_chunk_tokens, max_num_batched_tokens);
}

Status validate(const SequenceRequest& request, const SchedulerConfig& config) {
  const auto refuse = [](const char* field, std::int32_t minimum, std::int64_t actual) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} must be at least {}, got {}", field, minimum, actual), field);
  };
  if (request.prompt_token_ids.empty()) {
    return make_error(ErrorKind::kUsage, "prompt must have at least 1 token, got 0", "prompt");
  }
  if (request.num_choices < 1) return refuse("n", 1, request.num_choices);
  if (request.stop.max_tokens < 0) return refuse("max_tokens", 0, request.stop.max_tokens);
  if (request.stop.min_tokens < 0) return refuse("min_tokens", 0, request.stop.min_tokens);
  if (config.runs_whole_prompts) return check_runs_whole(request, config.max_num_batched_tokens);
  return {};
}

}  // namespace kvasir::sched
