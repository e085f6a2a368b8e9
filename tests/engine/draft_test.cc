// Guessed tokens change nothing: tokens and log-probabilities are those of steps of one token, bit for bit.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"

namespace kvasir::draft_test {
namespace {

constexpr int kNumSequences = 3;
constexpr std::int32_t kGeneratedTokens = 60;

struct Answer {
  std::vector<TokenId> token_ids;
  std::vector<PositionLogprobs> logprobs;
};

struct Outcome {
  std::vector<Answer> answers{kNumSequences};
  int num_steps = 0;
};

// The real scheduler and model; the answers to guess from are known.
class DraftRun {
 public:
  DraftRun(const std::string& model, const SamplingParams& params) : params_(params) {
    EngineConfig config;
    config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + model + ".gguf";
    config.num_threads = 2;
    config.kv_cache_tokens = 1024;
    loaded_ = load_model_file(config, {});
  }

  // `known`: a guess is right where a draw below `percent_right` says so; null: nothing is guessed.
  Outcome run(const Outcome* known, int percent_right) {
    Outcome outcome;
    EXPECT_TRUE(loaded_);
    kv::KvCacheManager kv(loaded_->kv);
    sched::Scheduler scheduler({.max_num_seqs = kNumSequences, .max_num_batched_tokens = 64}, kv);
    runtime::ModelRunner runner(*loaded_->model, *loaded_->backend, loaded_->kv_views(kv.cells()),
                                loaded_->prefill_only_memory(kv.cells(), kv.prefill_only().group()),
                                loaded_->max_logit_rows);
    std::map<SequenceId, std::size_t> index_of;
    for (std::size_t i = 0; i < kNumSequences; ++i) index_of[*scheduler.add(request(i), {})] = i;
    while (scheduler.has_unfinished() && outcome.num_steps < 1000) {
      ++outcome.num_steps;
      const sched::SchedulerOutput& output = scheduler.schedule({});
      std::vector<runtime::SamplingTask> tasks;
      for (const sched::ScheduledSequence& s : output.sequences) {
        tasks.push_back({.params = &params_,
                         .seed = 7 + index_of.at(s.id),
                         .allowed = sampling::AllowedTokens::all()});
      }
      for (const runtime::SequenceResult& result : runner.run(output, tasks)) {
        EXPECT_FALSE(result.error) << result.error->message;
      }
      for (const sched::SequenceUpdate& update : scheduler.update(runner.sampled(), {})) {
        Answer& answer = outcome.answers[index_of.at(update.id)];
        for (const sched::SampledToken& sampled : update.tokens) {
          answer.token_ids.push_back(sampled.token);
          answer.logprobs.push_back(sampled.logprobs.value());
        }
      }
      if (known != nullptr) guess(scheduler, *known, outcome, index_of, percent_right);
    }
    return outcome;
  }

 private:
  static sched::SequenceRequest request(std::size_t index) {
    sched::SequenceRequest request;
    request.request_id = RequestId{index + 1};
    for (std::size_t i = 0; i < 10 + 11 * index; ++i) {
      request.prompt_token_ids.push_back(static_cast<TokenId>(3 + (i * (index + 5)) % 90));
    }
    request.stop.max_tokens = kGeneratedTokens;
    return request;
  }

  void guess(sched::Scheduler& scheduler, const Outcome& known, const Outcome& so_far,
             const std::map<SequenceId, std::size_t>& index_of, int percent_right) {
    for (const auto& [id, index] : index_of) {
      const std::vector<TokenId>& all = known.answers[index].token_ids;
      std::vector<TokenId> draft;
      const std::size_t num_tokens = 1 + random_() % 20;
      for (std::size_t i = so_far.answers[index].token_ids.size(); i < all.size(); ++i) {
        if (draft.size() == num_tokens) break;
        const bool is_right = static_cast<int>(random_() % 100) < percent_right;
        draft.push_back(is_right ? all[i] : TokenId{5});
      }
      scheduler.set_draft(id, draft);
    }
  }

  SamplingParams params_;
  Result<LoadedModel> loaded_ = make_error(ErrorKind::kBadFile, "not loaded");
  std::mt19937 random_{1};
};

class Drafts : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_unchanged(const SamplingParams& params) {
    DraftRun run(GetParam(), params);
    const Outcome plain = run.run(nullptr, 0);
    for (const int percent_right : {0, 70, 100}) {
      SCOPED_TRACE(percent_right);
      const Outcome guessed = run.run(&plain, percent_right);
      for (std::size_t i = 0; i < kNumSequences; ++i) {
        EXPECT_EQ(guessed.answers[i].token_ids, plain.answers[i].token_ids);
        ASSERT_EQ(guessed.answers[i].logprobs.size(), plain.answers[i].logprobs.size());
        for (std::size_t t = 0; t < plain.answers[i].logprobs.size(); ++t) {
          EXPECT_EQ(guessed.answers[i].logprobs[t].chosen.logprob,
                    plain.answers[i].logprobs[t].chosen.logprob);
        }
      }
      if (percent_right == 100) {
        EXPECT_LT(guessed.num_steps, plain.num_steps / 2);
      }
    }
  }
};

TEST_P(Drafts, ChangeNoGreedyToken) {
  SamplingParams params;
  params.temperature = 0.0f;
  params.logprobs = 2;
  expect_unchanged(params);
}

TEST_P(Drafts, ChangeNoDrawnTokenUnderPenalties) {
  SamplingParams params;
  params.temperature = 1.0f;
  params.top_k = 50;
  params.frequency_penalty = 0.4f;
  params.repetition_penalty = 1.1f;
  params.logprobs = 2;
  expect_unchanged(params);
}

INSTANTIATE_TEST_SUITE_P(Models, Drafts, ::testing::Values("llama-q4_k", "qwen3-q4_1", "gemma3-q5_0",
                                                                "gemma4-q4_0"));

}  // namespace
}  // namespace kvasir::draft_test
