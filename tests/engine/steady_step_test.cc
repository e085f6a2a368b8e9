// A step in which nothing begins, ends or crosses into a new KV block allocates nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <vector>

#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"

namespace {

std::atomic<std::int64_t> num_allocations{0};  // of every thread

void* counted(std::size_t size, std::size_t alignment) {
  ++num_allocations;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// At -O1 GCC sees one side of these pairs inlined and the other not.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace kvasir::steady_step_test {
namespace {

constexpr int kNumSequences = 3;

class SteadyStep : public ::testing::TestWithParam<const char*> {
 protected:
  // Prompts of 33 tokens and more: positions 33 to 46 lie in one block of 16.
  static sched::SequenceRequest request(int index) {
    sched::SequenceRequest request;
    request.request_id = RequestId{static_cast<std::uint64_t>(index) + 1};
    request.prompt_token_ids.assign(33, TokenId{5 + index});
    request.stop.max_tokens = 64;
    return request;
  }
  // A request of 12 passes of 33 tokens in its first layer.
  static sched::SequenceRequest scored_request() {
    sched::SequenceRequest request;
    request.request_id = RequestId{100};
    request.prompt_token_ids.assign(500, TokenId{5});
    request.use_prefix_cache = false;
    request.stop.max_tokens = 0;
    return request;
  }

  // Runs 12 steps of kNumSequences and of `num_scored` others that ask for their prompt only. After the first
  // three none may allocate.
  static void expect_steady(int num_scored) {
    EngineConfig config;
    config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + GetParam() + ".gguf";
    config.num_threads = 2;
    config.kv_cache_tokens = 1024;
    auto loaded = load_model_file(config, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    kv::KvCacheManager kv(loaded->kv);
    sched::Scheduler scheduler({.max_num_seqs = 4,
                                .max_num_batched_tokens = 512,
                                .max_chunk_tokens = num_scored > 0 ? 33 : 0,
                                .prefill_only = {.max_tokens = loaded->memory.max_prefill_only_tokens,
                                                 .num_layers = loaded->info.num_layers}},
                               kv);
    runtime::ModelRunner runner(*loaded->model, *loaded->backend, loaded->kv_views(kv.cells()),
                                loaded->prefill_only_memory(kv.cells(), kv.prefill_only().group()),
                                loaded->max_logit_rows);
    SamplingParams params;
    params.temperature = 0.7f;
    params.top_k = 20;
    params.top_p = 0.9f;
    const std::vector<runtime::SamplingTask> tasks(static_cast<std::size_t>(kNumSequences + num_scored),
                                                   {.params = &params, .allowed = sampling::AllowedTokens::all()});
    for (int i = 0; i < kNumSequences; ++i) {
      ASSERT_TRUE(scheduler.add(request(i), std::chrono::steady_clock::time_point()));
    }
    for (int i = 0; i < num_scored; ++i) {
      ASSERT_TRUE(scheduler.add(scored_request(), std::chrono::steady_clock::time_point()));
    }

    for (int step = 0; step < 12; ++step) {
      const std::int64_t before = num_allocations;
      const sched::SchedulerOutput& output = scheduler.schedule({});
      ASSERT_EQ(output.sequences.size(), tasks.size());
      runner.run(output, tasks);
      ASSERT_EQ(scheduler.update(runner.sampled(), {}).size(), std::size_t{kNumSequences});
      const std::int64_t num_new = num_allocations - before;
      if (step == 0) {
        EXPECT_GT(num_new, 0);
      } else if (step >= 3) {
        EXPECT_EQ(num_new, 0) << "step " << step;
      }
    }
  }
};

TEST_P(SteadyStep, AllocatesNothing) { expect_steady(0); }

TEST_P(SteadyStep, AllocatesNothingBesideAPromptThatRunsLayerByLayer) { expect_steady(1); }

INSTANTIATE_TEST_SUITE_P(Models, SteadyStep, ::testing::Values("llama-q4_k", "qwen3-q4_1", "gemma3-q5_0",
                                                                "gemma4-q4_0"));

}  // namespace
}  // namespace kvasir::steady_step_test
