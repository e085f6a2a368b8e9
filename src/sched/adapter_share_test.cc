// Adapters of one tenant share what it is given: a flood of one leaves the others their part.
#include <algorithm>
#include <map>
#include <string>

#include "sched/scheduler_fixture.h"

namespace kvasir::sched::adapter_share_test {
namespace {

constexpr std::int32_t kPromptTokens = 400;

class AdapterShareTest : public SchedulerTest {
 protected:
  void build_by_value(std::int32_t max_num_seqs) {
    build({.max_num_seqs = max_num_seqs,
           .max_num_batched_tokens = 512,
           .waiting = {.policy = WaitingPolicy::kSloValue, .tenant_quantum_tokens = 512.0}},
          {{.num_blocks = 4000}}, false);
  }
  SequenceId add_of(const std::string& adapter, std::int32_t max_tokens = 1, const std::string& tenant = "") {
    const std::uint64_t id = num_short_++;
    SequenceRequest request = make_request(id, prompt_of(kPromptTokens, static_cast<TokenId>(1000 * id)), max_tokens);
    request.tenant = tenant;
    request.adapter = adapter;
    const SequenceId added = scheduler_->add(std::move(request), at_ms(now_ms_)).value();
    queue_of_[added] = tenant + "/" + adapter;
    return added;
  }
  bool is_unfinished(SequenceId id) const { return scheduler_->sequences().contains(id); }
  // Keeps `count` requests of the queue unfinished.
  void keep(const std::string& adapter, int count, const std::string& tenant = "") {
    for (const auto& [id, sequence] : scheduler_->sequences()) {
      if (queue_of_.at(id) == tenant + "/" + adapter) --count;
    }
    for (; count > 0; --count) add_of(adapter, 1, tenant);
  }
  // A step, and the tokens that each queue had of it.
  void counted_step() {
    std::map<SequenceId, std::int32_t> computed;
    for (const auto& [id, sequence] : scheduler_->sequences()) computed[id] = sequence.num_computed_tokens;
    timed_step();
    for (const auto& [id, before] : computed) {
      const auto found = scheduler_->sequences().find(id);
      tokens_of_[queue_of_.at(id)] += (found == scheduler_->sequences().end() ? kPromptTokens : found->second.num_computed_tokens) - before;
    }
  }
  // How long a single request of `adapter` takes beside a flood of "flood", at most of ten.
  std::int64_t longest_beside_flood_ms(const std::string& adapter) {
    build_by_value(4);
    std::int64_t longest_ms = 0;
    for (int i = 0; i < 10; ++i) {
      for (int j = 0; j < 30; ++j) {
        keep("flood", 50);
        timed_step();
      }
      const std::int64_t began_ms = now_ms_;
      for (const SequenceId single = add_of(adapter); is_unfinished(single); timed_step()) keep("flood", 50);
      longest_ms = std::max(longest_ms, now_ms_ - began_ms);
    }
    TearDown();  // the sequences go with their scheduler
    return longest_ms;
  }

  std::map<SequenceId, std::string> queue_of_;
  std::map<std::string, std::int64_t> tokens_of_;
};

// A step takes 512 ms. The prompt that runs and its own fit three of them.
TEST_F(AdapterShareTest, AFloodDelaysNoSingleRequestOfAnother) {
  EXPECT_LE(longest_beside_flood_ms("single"), 3 * 512);
  EXPECT_LE(longest_beside_flood_ms(""), 3 * 512) << "the model as it is";
  EXPECT_GT(longest_beside_flood_ms("flood"), 20 * 512) << "among its own";
}

TEST_F(AdapterShareTest, TwoFloodsGetTheSame) {
  build_by_value(4);
  for (int i = 0; i < 400; ++i) {
    keep("many", 40);
    keep("few", 4);
    counted_step();
  }
  EXPECT_NEAR(static_cast<double>(tokens_of_["/many"]), static_cast<double>(tokens_of_["/few"]), 8 * 512.0);
  EXPECT_GT(tokens_of_["/few"], 190 * 512);
}

TEST_F(AdapterShareTest, SeatsAreLeftForThoseThatCameLately) {
  for (const bool is_other : {true, false}) {
    build_by_value(16);
    const std::string other = is_other ? "other" : "flood";
    for (const SequenceId first = add_of(other); is_unfinished(first);) timed_step();
    for (int i = 0; i < 40; ++i) add_of("flood", 1000);
    for (int i = 0; i < 60; ++i) timed_step();  // each of those that have a seat generates
    EXPECT_EQ(scheduler_->stats().num_running, is_other ? 15 : 16);
    const SequenceId late = add_of(other);
    for (int i = 0; i < 4 && is_unfinished(late); ++i) timed_step();
    EXPECT_EQ(is_unfinished(late), !is_other);
    TearDown();
  }
}

// Half of the throughput would be a high price for an adapter that may come back.
TEST_F(AdapterShareTest, FewSeatsAreAllGiven) {
  build_by_value(2);
  for (const SequenceId first = add_of("other"); is_unfinished(first);) timed_step();
  for (int i = 0; i < 4; ++i) add_of("flood", 1000);
  for (int i = 0; i < 10; ++i) timed_step();
  EXPECT_EQ(scheduler_->stats().num_running, 2);
}

TEST_F(AdapterShareTest, MoreAdaptersAreNoLargerShareOfATenant) {
  build_by_value(4);
  for (int i = 0; i < 400; ++i) {
    for (int j = 0; j < 5; ++j) keep("adapter" + std::to_string(j), 4, "many");
    keep("", 4, "one");
    counted_step();
  }
  std::int64_t of_many = 0;
  for (int j = 0; j < 5; ++j) of_many += tokens_of_["many/adapter" + std::to_string(j)];
  EXPECT_NEAR(static_cast<double>(of_many), static_cast<double>(tokens_of_["one/"]), 16 * 512.0);
  for (int j = 0; j < 5; ++j) {
    EXPECT_NEAR(static_cast<double>(tokens_of_["many/adapter" + std::to_string(j)]), static_cast<double>(of_many) / 5, 8 * 512.0);
  }
}

}  // namespace
}  // namespace kvasir::sched::adapter_share_test
