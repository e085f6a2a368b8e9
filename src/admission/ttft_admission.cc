#include "admission/ttft_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "admission/ttft_estimate.h"
#include "admission/ttft_target.h"

namespace kvasir::admission {
namespace {

kv::SipKey random_key() {
  std::random_device entropy;
  const auto draw = [&] { return (std::uint64_t{entropy()} << 32) | entropy(); };
  return {draw(), draw()};
}

}  // namespace

TtftAdmission::TtftAdmission(const WaitingConfig& waiting, std::int32_t ttft_target_ms, bool prefix_cache)
    : waiting_(waiting),
      ttft_target_ms_(ttft_target_ms),
      prefix_cache_(prefix_cache),
      recent_prompts_(random_key()) {}

Status TtftAdmission::check(const Request& request, TimePoint now) {
  if (ttft_target_ms_ <= 0) return {};
  const double target_ms = target_ms_of(ttft_target_ms_, request.priority);
  const std::int32_t num_cached = expected_cached_tokens(request);
  PromptWork prompt;
  prompt.add(num_cached, std::ssize(request.prompt_token_ids) - num_cached);
  const TtftEstimate estimate = estimate_ttft(load_, waiting_, request.tenant, request.priority, prompt,
                                              wants_prompt_only(request));
  const TtftSlack::Arrival arrival{.tenant = request.tenant,
                                   .is_underserved = is_underserved(load_, waiting_, request.tenant),
                                   .has_backlog = load_.has_backlog(),
                                   .has_own_backlog = load_.has_backlog(request.tenant)};
  const double late_ms = excess_ms(estimate, target_ms, slack_.targets(arrival, now));
  if (late_ms <= 0.0) return {};
  slack_.note_refusal(request.tenant, now);
  const double expected_ms = estimate.wait_ms + estimate.prefill_ms;
  return std::unexpected(Error{
      .kind = ErrorKind::kUnavailable,
      .message = fmt::format(
          "queue: the first token is expected after {:.1f} s, {:.1f} s is the limit now (--ttft-target-ms)",
          expected_ms / 1000, (expected_ms - late_ms) / 1000),
      .param = {},
      .retry_after_s = static_cast<std::int32_t>(std::clamp(std::ceil(late_ms / 1000), 1.0, 60.0))});
}

std::int32_t TtftAdmission::expected_cached_tokens(const Request& request) const {
  if (!request.use_prefix_cache || !prefix_cache_) return 0;
  return recent_prompts_.find(request.cache_namespace, request.prompt_token_ids);
}

// As the scheduler will see it, apart from its length.
bool TtftAdmission::wants_prompt_only(const Request& request) const {
  return request.sampling.max_tokens == 0 && request.sampling.n == 1 &&
         !(request.use_prefix_cache && prefix_cache_);
}

std::int32_t TtftAdmission::admit(const Request& request) {
  const std::int32_t num_cached = request.use_prefix_cache && prefix_cache_
                                      ? recent_prompts_.add(request.tenant, request.cache_namespace,
                                                            request.prompt_token_ids)
                                      : 0;
  add_waiting(request, num_cached);
  return num_cached;
}

std::int32_t TtftAdmission::num_waiting_sequences() const {
  std::int32_t num_sequences = 0;
  for (const WaitingGroup& group : load_.groups) num_sequences += group.num_sequences;
  return num_sequences;
}

void TtftAdmission::add_waiting(const Request& request, std::int32_t expected_cached_tokens) {
  WaitingGroup& group = load_.group(request.tenant, request.priority, load_.served_tokens(request.tenant));
  group.num_sequences += request.sampling.n;
  load_.add_holding(request.sampling.n, request.sampling.max_tokens.value_or(load_.usual_answer_tokens));
  PromptWork work;
  work.add(expected_cached_tokens, std::ssize(request.prompt_token_ids) - expected_cached_tokens);
  group.prompts += work;
  if (wants_prompt_only(request)) {
    group.prefill_only += work;
  } else if (yields(load_.rates, work, ttft_target_ms_)) {
    group.long_ones.push_back(work);
  }
}

}  // namespace kvasir::admission
