// A scheduler for tests, without a model.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sched/scheduler.h"

namespace kvasir::sched {

inline TimePoint at_ms(std::int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

inline std::vector<TokenId> prompt_of(std::int32_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline SequenceRequest make_request(std::uint64_t id, std::vector<TokenId> prompt,
                                    std::int32_t max_tokens = 100) {
  SequenceRequest request;
  request.request_id = RequestId{id};
  request.prompt_token_ids = std::move(prompt);
  request.stop.max_tokens = max_tokens;
  return request;
}

// A scheduler whose model always says token 1000.
class SchedulerTest : public testing::Test {
 protected:
  static constexpr TokenId kSampled = 1000;

  void build(SchedulerConfig config, std::vector<kv::LayerGroup> groups, bool prefix_cache = true) {
    kv_.emplace(kv::KvCacheConfig{.groups = std::move(groups), .prefix_cache = prefix_cache});
    scheduler_.emplace(config, *kv_);
  }
  SequenceId add(SequenceRequest request) { return scheduler_->add(std::move(request), at_ms(0)).value(); }
  // A request with a prompt of its own, at now_ms_; for one token unless said otherwise.
  SequenceId add_short(const char* tenant, std::int32_t priority, std::int32_t num_prompt_tokens,
                       std::int32_t max_tokens = 1) {
    const std::uint64_t id = num_short_++;
    SequenceRequest request = make_request(id, prompt_of(num_prompt_tokens, static_cast<TokenId>(100 * id)),
                                           max_tokens);
    request.tenant = tenant;
    request.priority = priority;
    return scheduler_->add(std::move(request), at_ms(now_ms_)).value();
  }
  // One whole step; what it ran.
  std::vector<ScheduledSequence> step(TimePoint now = at_ms(0)) {
    const SchedulerOutput& output = scheduler_->schedule(now);
    const std::vector<ScheduledSequence> ran = output.sequences;
    result_ = answer(output);
    updates_ = scheduler_->update(result_, now);
    return ran;
  }
  // One step that takes a millisecond a token and ms_per_key_ for what each reads; how many it ran.
  std::int32_t timed_step() {
    const SchedulerOutput& output = scheduler_->schedule(at_ms(now_ms_));
    std::int32_t num_tokens = 0;
    StepWork work;
    for (const ScheduledSequence& s : output.sequences) {
      num_tokens += s.num_tokens;
      work.add_chunk(s.first_position, s.num_tokens);
    }
    now_ms_ += num_tokens + std::lround(ms_per_key_ * static_cast<double>(work.num_attended_tokens));
    result_ = answer(output);
    updates_ = scheduler_->update(result_, at_ms(now_ms_));
    return num_tokens;
  }
  static ModelStepResult answer(const SchedulerOutput& output) {
    ModelStepResult result;
    for (const ScheduledSequence& s : output.sequences) result.add(s.samples ? kSampled : kNoToken);
    return result;
  }
  void TearDown() override {
    std::vector<SequenceId> left;
    for (const auto& [id, sequence] : scheduler_->sequences()) left.push_back(id);
    for (const SequenceId id : left) EXPECT_TRUE(scheduler_->finish(id));
    for (std::int32_t g = 0; g < kv_->num_groups(); ++g)
      EXPECT_EQ(kv_->pool(g).num_free(), kv_->pool(g).num_blocks());
  }

  std::optional<kv::KvCacheManager> kv_;
  std::optional<Scheduler> scheduler_;
  ModelStepResult result_;
  std::span<const SequenceUpdate> updates_;
  std::int64_t now_ms_ = 0;  // of timed_step() and add_short()
  double ms_per_key_ = 0.0;
  std::uint64_t num_short_ = 0;
};

}  // namespace kvasir::sched
