// A second, smaller model that guesses what the first one generates next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "runtime/model_runner.h"
#include "sched/scheduler_output.h"

namespace kvasir {

// Guesses what it would answer itself, with the parameters and the random numbers of the request: where its distribution
// is the model's, so are its draws. Keeps a KV cache of its own in which it follows the texts that it is asked about.
// Cells of a wrong guess are written over. What it keeps never has to be right: with less it guesses worse, or not at all.
//
// Thread safety: none; on the engine thread.
class DraftModel {
 public:
  // EngineConfig::draft_model_path. Errors: as of load_model_file().
  static Result<std::unique_ptr<DraftModel>> load(const EngineConfig& config, const LoadProgress& progress);
  explicit DraftModel(LoadedModel loaded);

  // kUsage: the model's tokens are not those of this tokenizer. Null: it has none, and none are compared.
  Status check_tokens(const text::Tokenizer* target) const;
  // Its workers are the model's too, for the two take turns.
  const std::shared_ptr<ThreadPool>& pool() const { return loaded_.pool; }
  // Its weights, KV cache and workspace take so much.
  std::int64_t num_bytes() const;

  struct Asked {
    SequenceId id{};
    std::span<const TokenId> tokens;  // so far
    std::int32_t num_prompt_tokens = 0;  // of them
    const SamplingParams* params = nullptr;  // the same at each question about the sequence
    std::uint64_t seed = 0;
    std::int32_t choice_index = 0;
    std::span<const TokenId> stop_tokens;  // held off until min_tokens
    std::int32_t num_guesses = 0;
    std::vector<TokenId> guesses;  // of the next ones; the answer
  };
  // Passes that read little more than a token of each sequence.
  struct Passes {
    std::int32_t count = 0;
    double milliseconds = 0.0;  // of all
  };
  // Fills in guesses, all of them or none: a long text is read over several calls, and there may be no memory for it.
  Passes guess(std::span<Asked> asked);
  // Nobody will ask about this sequence again.
  void end(SequenceId id);

 private:
  struct Followed {
    SamplingParams params;  // without what guesses need not
    kv::SequenceKv kv;
    std::vector<TokenId> tokens;  // in the cache or to be computed: the text, then guesses
    std::size_t num_text_tokens = 0;  // of them, that are no guesses
    std::int32_t num_computed = 0;
  };
  // One that takes part in the passes of a call.
  struct Reader {
    Asked* asked = nullptr;
    Followed* followed = nullptr;
    std::int32_t num_rows = 0;  // in the next pass
  };

  bool follow(const Asked& asked, Followed& followed);
  bool make_room(Followed& followed, std::int32_t num_tokens);
  void add_reader(Asked& asked, std::int32_t& rows_left);
  void run_pass();
  void take_results();
  void forget_others();

  LoadedModel loaded_;
  kv::KvCacheManager kv_;
  runtime::ModelRunner runner_;
  std::map<SequenceId, Followed> followed_;
  std::vector<Reader> readers_;
  sched::SchedulerOutput output_;
  std::vector<runtime::SamplingTask> tasks_;
};

}  // namespace kvasir
