// LocalEngine: admission.
#include <bit>

#include "engine/local_engine.h"
#include "engine/request_check.h"

namespace kvasir {

Result<std::vector<RequestId>> LocalEngine::submit(std::vector<Submission> submissions) {
  return enter(std::move(submissions), Entry::kTogether);
}

Result<std::vector<RequestId>> LocalEngine::submit_some(std::vector<Submission> submissions) {
  return enter(std::move(submissions), Entry::kWhatFits);
}

Result<std::vector<RequestId>> LocalEngine::enter(std::vector<Submission> submissions, Entry entry) {
  const auto num_requests = std::ssize(submissions);
  for (Submission& submission : submissions) {
    if (auto status = complete(submission.request); !status) {
      num_rejected_ += num_requests;
      return std::unexpected(std::move(status).error());
    }
  }
  auto ids = enqueue(std::move(submissions), entry);
  if (!ids) num_rejected_ += num_requests;
  return ids;
}

// Completes the settings that the request left to the engine.
Status LocalEngine::complete(Request& request) const {
  KVASIR_CHECKED(check_request(request, loaded_.info, loaded_.tokenizer != nullptr));
  if (request.start_within_ms == 0 && !request.is_admitted)
    request.start_within_ms = config_.queue_timeout_ms;
  if (!request.sampling.max_tokens) {
    request.sampling.max_tokens = loaded_.info.max_model_len_tokens -
                                  static_cast<std::int32_t>(request.prompt_token_ids.size());
  }
  return {};
}

Status LocalEngine::check_queue(std::span<const Submission> submissions, std::int64_t num_spared) const {
  const Request& first = submissions.front().request;
  admission::Arrivals arrivals{.tenant = first.tenant,
                               .priority = first.priority,
                               .num_requests = std::ssize(submissions) + num_spared};
  if (queue_limit_.limits_prompt_tokens()) {
    for (const Submission& submission : submissions) {
      const Request& request = submission.request;
      arrivals.num_prompt_tokens += std::ssize(request.prompt_token_ids) -
                                    ttft_admission_.expected_cached_tokens(request);
    }
  }
  return queue_limit_.check(arrivals, ttft_admission_.load());
}

// Whether they are let in now, or how many of them.
Status LocalEngine::check_entry(std::vector<Submission>& submissions, Entry entry) {
  const Request& first = submissions.front().request;
  if (!first.is_admitted) {
    const auto num_needed = entry == Entry::kTogether ? submissions.size() : 1;
    if (Status status = check_queue(std::span(submissions).first(num_needed), 0); !status) {
      num_beyond_queue_ += std::ssize(submissions);
      return status;
    }
    if (Status status = ttft_admission_.check(first, std::chrono::steady_clock::now()); !status) {
      num_too_late_ += std::ssize(submissions);
      return status;
    }
  }
  if (entry == Entry::kTogether) return {};
  // They come again and again: a place is left to requests for one answer.
  std::size_t num_fitting = submissions.size();
  while (num_fitting > 1 && !check_queue(std::span(submissions).first(num_fitting), 1)) --num_fitting;
  submissions.resize(num_fitting);
  return {};
}

Result<std::vector<RequestId>> LocalEngine::enqueue(std::vector<Submission> submissions, Entry entry) {
  std::vector<RequestId> ids;
  if (submissions.empty()) return ids;
  {
    const std::lock_guard lock(mutex_);
    const bool is_open = !draining_ || submissions.front().request.is_admitted;
    if (!is_open || is_closed_ || stopping_)
      return make_error(ErrorKind::kUnavailable, "the server is shutting down");
    if (const Status status = check_entry(submissions, entry); !status)
      return std::unexpected(status.error());
    // Short of memory it fails before it has counted a request that does not come.
    ids.reserve(submissions.size());
    mailbox_.reserve(std::bit_ceil(mailbox_.size() + submissions.size()));
    for (Submission& submission : submissions) {
      const std::int32_t expected_cached_tokens = ttft_admission_.admit(submission.request);
      queue_limit_.admit(submission.request.tenant);
      ids.push_back(RequestId{next_request_id_++});
      mailbox_.push_back(Arrival{ids.back(), std::move(submission), expected_cached_tokens});
    }
  }
  work_available_.notify_one();
  return ids;
}

std::shared_ptr<void> LocalEngine::keep_open() {
  {
    const std::lock_guard lock(mutex_);
    ++num_kept_open_;
  }
  // Without the lock, for it calls what takes it when there is no memory.
  return {this, [](LocalEngine* engine) {
            const std::lock_guard release(engine->mutex_);
            if (--engine->num_kept_open_ == 0) engine->all_done_.notify_all();
          }};
}

}  // namespace kvasir
