// A journal listens to an engine's KV policies: it changes nothing, and what it hears is what happened.
#include <gtest/gtest.h>

#include <map>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"
#include "kv/testing/recording_journal.h"

namespace kvasir::kv_journal_test {
namespace {

using testing::Answer;
using testing::generate;
using testing::greedy_request;
using testing::random_prompts;

class KvJournalOfEngine : public ::testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Engine> load(kv::PolicyJournal* journal, std::int32_t max_num_seqs = 32) {
    EngineConfig config;
    config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + GetParam() + ".gguf";
    config.num_threads = 2;
    config.kv_cache_tokens = 4096;
    config.max_chunk_tokens = 32;
    config.max_num_seqs = max_num_seqs;
    config.kv_journal = journal;
    auto engine = Engine::load(config);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }
  static std::vector<Request> requests(const Engine& engine, const KvParams& kv) {
    const std::int32_t longest = engine.model_info().max_model_len_tokens - 24;
    std::vector<Request> all;
    for (auto& prompt : random_prompts(3, longest / 2, longest, engine.model_info().vocab_size, 5)) {
      all.push_back(greedy_request(std::move(prompt), 24));
      all.back().kv = kv;
      all.back().use_prefix_cache = false;
      all.back().client_id = "number " + std::to_string(all.size());
    }
    return all;
  }
};

TEST_P(KvJournalOfEngine, ChangesNoToken) {
  kv::RecordingJournal journal;
  for (const char* policy : {"ladder", "uniform", "mass"}) {
    const auto silent = load(nullptr), heard = load(&journal);
    ASSERT_TRUE(silent != nullptr && heard != nullptr);
    const std::vector<Answer> expected = generate(*silent, requests(*silent, {policy, 0.3}));
    const std::vector<Answer> answers = generate(*heard, requests(*heard, {policy, 0.3}));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(answers[i].token_ids, expected[i].token_ids);
      EXPECT_EQ(answers[i].usage.kv_bytes_share, expected[i].usage.kv_bytes_share);
    }
  }
  EXPECT_EQ(journal.runs.size(), 3u);
  EXPECT_EQ(journal.sequences.size(), 9u);
}

TEST_P(KvJournalOfEngine, TellsOfEveryStepItsBytesAndItsCells) {
  kv::RecordingJournal journal;
  std::vector<Answer> answers;
  {
    const auto engine = load(&journal);
    ASSERT_NE(engine, nullptr);
    answers = generate(*engine, requests(*engine, {.budget = 0.3, .quality = KvQuality::kBestEffort}));
  }
  ASSERT_EQ(journal.sequences.size(), answers.size());
  EXPECT_EQ(journal.ends.size(), answers.size());
  for (const kv::SequenceRecord& sequence : journal.sequences) {
    const std::size_t request = static_cast<std::size_t>(sequence.holder.request_id) - 1;
    EXPECT_EQ(sequence.holder.client_id, "number " + std::to_string(request + 1));
    double sum = 0.0, last = 0.0, peak = 0.0;
    int num_steps = 0;
    kv::ReplayedCells replayed(kv::KvFormat::kF16);
    for (const kv::StepRecord& step : journal.steps) {
      if (step.hold != sequence.hold) continue;
      sum += last = step.bytes_share_after;
      peak = std::max(peak, step.bytes_share_before);
      ++num_steps;
      ASSERT_TRUE(replayed.apply(step));
      for (int i = 0; i < kv::kNumKvFormats; ++i) {
        const auto format = static_cast<kv::KvFormat>(i);
        if (format == kv::KvFormat::kF16) continue;  // most of which nobody has touched
        EXPECT_EQ(step.num_cells[static_cast<std::size_t>(i)], replayed.num_cells(format));
      }
    }
    EXPECT_GT(num_steps, 0);
    EXPECT_DOUBLE_EQ(answers[request].usage.kv_bytes_share, last);
    EXPECT_DOUBLE_EQ(answers[request].usage.kv_bytes_share_mean, sum / num_steps);
    EXPECT_DOUBLE_EQ(answers[request].usage.kv_bytes_share_peak, peak);
  }
}

// The first of two has its first token, the second waits for its seat.
TEST_P(KvJournalOfEngine, HearsNothingMoreOfAPolicyThatWasFrozen) {
  kv::RecordingJournal journal;
  std::vector<Usage> usages(4);
  std::size_t num_steps_before = 0;
  {
    const auto engine = load(&journal, 1);
    ASSERT_NE(engine, nullptr);
    std::vector<Request> asked = requests(*engine, {.policy = "window", .budget = 0.1, .quality = KvQuality::kBestEffort});
    for (Request& request : asked) request.sampling.max_tokens = 100, request.prompt_token_ids.resize(100);
    asked[2].kv.policy = "uniform";
    asked.push_back(asked[0]);
    asked[3].kv.budget = 0.2;
    std::binary_semaphore has_begun(0), is_frozen(0);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      bool is_first = i == 0;
      const auto id = engine->submit(asked[i], [&, i, is_first](RequestOutput output) mutable {
        usages[i] = output.usage;
        if (!std::exchange(is_first, false)) return;
        num_steps_before = journal.steps.size();
        has_begun.release();
        is_frozen.acquire();
      });
      ASSERT_TRUE(id) << id.error().message;
    }
    has_begun.acquire();
    engine->freeze_kv_policy({.policy = "window", .quality = KvQuality::kBestEffort, .budget = 0.15});
    is_frozen.release();
    engine->drain(60'000);
  }
  EXPECT_GT(num_steps_before, 0u) << "it acted on the prompt";
  EXPECT_TRUE(usages[0].kv.is_downgraded);
  EXPECT_TRUE(usages[1].kv.is_downgraded);
  EXPECT_FALSE(usages[2].kv.is_downgraded) << "another policy";
  EXPECT_FALSE(usages[3].kv.is_downgraded) << "a larger budget";
  EXPECT_EQ(usages[1].completion_tokens, 100);
  ASSERT_EQ(journal.sequences.size(), 3u) << "the one that waited never acted";
  for (std::size_t i = num_steps_before; i < journal.steps.size(); ++i) EXPECT_NE(journal.steps[i].hold, journal.sequences[0].hold);
}

// The second of two equal prompts finds the first one's blocks in the cache.
TEST_P(KvJournalOfEngine, KnowsOfCachedBlocksWhatTheirKeysAndValuesAreLike) {
  kv::RecordingJournal journal;
  {
    const auto engine = load(&journal);
    ASSERT_NE(engine, nullptr);
    Request request = requests(*engine, {.budget = 0.9})[0];
    request.use_prefix_cache = true;
    const std::vector<Answer> first = generate(*engine, {request}), second = generate(*engine, {request});
    ASSERT_EQ(first[0].usage.cached_tokens, 0);
    ASSERT_GT(second[0].usage.cached_tokens, 0);
  }
  ASSERT_EQ(journal.ends.size(), 2u);
  int num_measured = 0;
  for (std::size_t g = 0; g < journal.ends[0].scores.size(); ++g) {
    const kv::SequenceScores &computed = journal.ends[0].scores[g], &cached = journal.ends[1].scores[g];
    for (std::int32_t cell = 0; cell < computed.num_cells(); ++cell) {
      const auto expected = computed.statistics(cell), found = cached.statistics(cell);
      for (std::int32_t b = 0; b < computed.num_measured_blocks(); ++b, ++num_measured) {
        EXPECT_NE(found[static_cast<std::size_t>(b)], 0.0f);
        EXPECT_NEAR(found[static_cast<std::size_t>(b)], expected[static_cast<std::size_t>(b)], 0.1);
      }
    }
  }
  EXPECT_GT(num_measured, 0);
}

TEST_P(KvJournalOfEngine, TellsOfNoOtherHeadsThanThoseThatAPolicyIsToTouch) {
  kv::RecordingJournal journal;
  {
    const auto engine = load(&journal);
    ASSERT_NE(engine, nullptr);
    generate(*engine, requests(*engine, {.policy = "k4v4", .first_head = 1, .end_head = 2}));
  }
  int num_actions = 0;
  for (const kv::StepRecord& step : journal.steps) {
    for (const kv::ActionRecord& action : step.actions) {
      EXPECT_EQ(action.cell, 1);
      ++num_actions;
    }
  }
  EXPECT_GT(num_actions, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, KvJournalOfEngine, ::testing::Values("qwen3-q4_1", "gemma3-q5_0"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace kvasir::kv_journal_test
