#include "engine/request_admission.h"

namespace kvasir {

RequestAdmission::RequestAdmission(const admission::QueueLimitConfig& queue_limit,
                                   const admission::WaitingConfig& waiting, const EngineConfig& config)
    : queue_limit_(queue_limit), ttft_admission_(waiting, config.ttft_target_ms, config.prefix_cache) {}

Result<std::size_t> RequestAdmission::check(std::span<const Submission> submissions, bool allow_part,
                                            admission::TimePoint now) {
  const Request& first = submissions.front().request;
  if (!first.is_admitted) {
    const std::size_t num_needed = allow_part ? 1 : submissions.size();
    if (Status status = check_queue(submissions.first(num_needed), 0); !status) {
      num_beyond_queue_ += std::ssize(submissions);
      return std::unexpected(std::move(status).error());
    }
    if (Status status = ttft_admission_.check(first, now); !status) {
      num_too_late_ += std::ssize(submissions);
      return std::unexpected(std::move(status).error());
    }
  }
  if (!allow_part) return submissions.size();
  // The caller comes again and again: a place is left to requests for one answer.
  std::size_t num_fitting = submissions.size();
  while (num_fitting > 1 && !check_queue(submissions.first(num_fitting), 1)) --num_fitting;
  return num_fitting;
}

std::int32_t RequestAdmission::admit(const Request& request) {
  const std::int32_t expected_cached_tokens = ttft_admission_.admit(request);
  queue_limit_.admit(request.tenant, request.adapter);
  return expected_cached_tokens;
}

void RequestAdmission::describe(EngineStats& stats) const {
  stats.num_waiting = ttft_admission_.num_waiting_sequences();
  stats.num_requests_rejected = num_rejected_;
  stats.num_requests_too_late = num_too_late_;
  stats.num_requests_beyond_queue = num_beyond_queue_;
}

Status RequestAdmission::check_queue(std::span<const Submission> submissions, std::int64_t num_spared) const {
  const Request& first = submissions.front().request;
  admission::Arrivals arrivals{.tenant = first.tenant,
                               .priority = first.priority,
                               .num_requests = std::ssize(submissions) + num_spared,
                               .adapter = first.adapter};
  if (queue_limit_.limits_prompt_tokens()) {
    for (const Submission& submission : submissions) {
      const Request& request = submission.request;
      arrivals.num_prompt_tokens += std::ssize(request.prompt_token_ids) -
                                    ttft_admission_.expected_cached_tokens(request);
    }
  }
  return queue_limit_.check(arrivals, ttft_admission_.load());
}

}  // namespace kvasir
