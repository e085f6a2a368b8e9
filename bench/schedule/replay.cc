#include "replay.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "admission/ttft_estimate.h"
#include "admission/ttft_slack.h"
#include "admission/ttft_target.h"
#include "base/check.h"
#include "kv/kv_cache_manager.h"
#include "sched/scheduled_work.h"

namespace kvasir::schedule {
namespace {

constexpr double kSloTtftMs = 2000.0;
constexpr double kSloGapMs = 100.0;
constexpr double kSloGapShare = 0.05;
constexpr TokenId kSomeToken = 7;

sched::TimePoint at(double ms) {
  return sched::TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6)));
}

class Replay {
 public:
  Replay(const std::vector<TraceRequest>& trace, const ReplayConfig& config)
      : trace_(trace),
        config_(config),
        kv_({.groups = {{.num_blocks = static_cast<std::int32_t>(config.kv_tokens / kv::kTokensPerBlock)}},
             .prefix_cache = false}),
        scheduler_(config.scheduler, kv_) {
    result_.outcomes.resize(trace.size());
    for (std::int32_t i = 0; i < config.num_tenants; ++i) tenants_.push_back(std::to_string(i));
  }

  ReplayResult run() {
    while (next_ < trace_.size() || scheduler_.has_unfinished()) {
      if (!scheduler_.has_unfinished()) now_ms_ = std::max(now_ms_, trace_[next_].at_ms);
      take_arrivals();
      if (scheduler_.has_unfinished()) step();
    }
    result_.seconds = now_ms_ / 1000.0;
    result_.num_steps = scheduler_.stats().num_steps;
    result_.num_preemptions = scheduler_.stats().num_preemptions;
    return std::move(result_);
  }

 private:
  struct Stream {
    std::size_t request = 0;
    std::optional<double> last_token_ms;
  };

  void take_arrivals() {
    for (; next_ < trace_.size() && trace_[next_].at_ms <= now_ms_; ++next_) {
      if (!may_enter(trace_[next_])) {
        result_.outcomes[next_].refused = true;
        continue;
      }
      enter(next_);
    }
  }

  bool may_enter(const TraceRequest& request) {
    if (scheduler_.stats().num_waiting >= config_.max_waiting) return false;
    const double target_ms = admission::target_ms_of(config_.scheduler.ttft_target_ms, 0);
    if (!config_.refuses || target_ms == 0.0) return true;
    scheduler_.describe_load(load_);
    admission::PromptWork prompt;
    prompt.add(0, request.num_prompt_tokens);
    const admission::WaitingConfig& waiting = config_.scheduler.waiting;
    const std::string& tenant = tenants_[static_cast<std::size_t>(request.tenant)];
    const admission::TtftEstimate estimate = admission::estimate_ttft(load_, waiting, tenant, 0, prompt);
    const double slack_targets = slack_.targets(
        {.tenant = tenant,
         .is_underserved = admission::is_underserved(load_, waiting, tenant),
         .has_backlog = load_.has_backlog(),
         .has_own_backlog = load_.has_backlog(tenant)},
        at(now_ms_));
    const bool is_in_time = admission::excess_ms(estimate, target_ms, slack_targets) <= 0.0;
    if (!is_in_time) slack_.note_refusal(tenant, at(now_ms_));
    return is_in_time;
  }

  void enter(std::size_t index) {
    const TraceRequest& asked = trace_[index];
    sched::SequenceRequest request;
    request.request_id = RequestId{index + 1};
    request.prompt_token_ids.assign(static_cast<std::size_t>(asked.num_prompt_tokens), kSomeToken);
    request.tenant = tenants_[static_cast<std::size_t>(asked.tenant)];
    request.use_prefix_cache = false;
    request.stop.max_tokens = asked.num_answer_tokens;
    const auto id = scheduler_.add(std::move(request), at(asked.at_ms));
    CHECK(id.has_value());
    streams_[*id] = {.request = index, .last_token_ms = std::nullopt};
  }

  void step() {
    const sched::SchedulerOutput& output = scheduler_.schedule(at(now_ms_));
    sched::ModelStepResult answer;
    for (const sched::ScheduledSequence& s : output.sequences) answer.add(s.samples ? kSomeToken : kNoToken);
    now_ms_ += config_.machine.step_ms(sched::work_of(output.sequences));
    for (const sched::SequenceUpdate& update : scheduler_.update(answer, at(now_ms_))) note(update);
  }

  void note(const sched::SequenceUpdate& update) {
    const auto found = streams_.find(update.id);
    Stream& stream = found->second;
    RequestOutcome& outcome = result_.outcomes[stream.request];
    ++result_.num_generated_tokens;
    if (!stream.last_token_ms) {
      outcome.ttft_ms = now_ms_ - trace_[stream.request].at_ms;
    } else {
      ++outcome.num_gaps;
      outcome.num_long_gaps += now_ms_ - *stream.last_token_ms > kSloGapMs ? 1 : 0;
    }
    stream.last_token_ms = now_ms_;
    if (update.finish_reason) streams_.erase(found);
  }

  const std::vector<TraceRequest>& trace_;
  const ReplayConfig& config_;
  kv::KvCacheManager kv_;
  sched::Scheduler scheduler_;
  admission::LoadSnapshot load_;
  std::vector<std::string> tenants_;
  std::map<SequenceId, Stream> streams_;
  std::size_t next_ = 0;
  double now_ms_ = 0.0;
  admission::TtftSlack slack_;
  ReplayResult result_;
};

}  // namespace

double Machine::step_ms(const admission::StepWork& work) const {
  return ms_per_step + ms_per_stream * work.num_decoding + ms_per_prompt_token * work.num_chunk_tokens +
         ms_per_100k_keys * 1e-5 * static_cast<double>(work.num_attended_tokens);
}

bool RequestOutcome::keeps_slo() const {
  return !refused && ttft_ms <= kSloTtftMs && num_long_gaps <= kSloGapShare * num_gaps;
}

ReplayResult replay(const std::vector<TraceRequest>& trace, const ReplayConfig& config) {
  return Replay(trace, config).run();
}

}  // namespace kvasir::schedule
