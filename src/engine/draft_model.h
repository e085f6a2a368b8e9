// A second, smaller model that guesses what the first one generates next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "runtime/model_runner.h"
#include "sampling/allowed_tokens.h"
#include "sampling/distribution.h"
#include "sched/scheduler_output.h"

namespace kvasir {

// Guesses what it would answer itself, with the parameters and the Gumbel noise of the request: where its distribution is
// near the model's, most of its draws are the model's too. For residual sampling it draws with other numbers, and keeps what
// it drew from. Keeps a KV cache of its own in which it follows the texts that it is asked about.
// Cells of a wrong guess are written over. What it keeps never has to be right: with less it guesses worse, or not at all.
//
// Thread safety: none; on the engine thread.
class DraftModel {
 public:
  // EngineConfig::draft_model_path. Errors: as of load_model_file().
  static Result<std::unique_ptr<DraftModel>> load(const EngineConfig& config, const LoadProgress& progress);
  // distribution_bytes: that guesses keep of what they were drawn from.
  explicit DraftModel(LoadedModel loaded, std::int64_t distribution_bytes = 0);

  // The model that is guessed for, which has so many tokens. Null: it has no tokenizer, and no texts are compared.
  // kUsage: a token has another text there.
  Status set_target(const text::Tokenizer* tokenizer, std::int32_t num_tokens);
  // Its workers are the model's too, for the two take turns.
  const std::shared_ptr<ThreadPool>& pool() const { return loaded_.pool; }
  // Its weights, KV cache, workspace and distributions take so much.
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
    // The guesses are to be checked by residual sampling. Never of a greedy request.
    bool is_residual = false;
    // Of those, the tokens that may come behind these guesses; nothing: none is guessed there. The view has to live until
    // the next call. Whether it ends must not depend on the last guess alone, or on one that is yet to come.
    std::function<std::optional<sampling::AllowedTokens>(std::span<const TokenId> guesses)> allowed_behind = {};

    std::vector<TokenId> guesses;                     // of the next ones; the answer
    std::vector<sampling::Distribution> drawn_from;  // of each of those to be checked so, at least
  };
  // Passes that read little more than a token of each sequence.
  struct Passes {
    std::int32_t count = 0;
    double milliseconds = 0.0;  // of all
  };
  // Fills in guesses, none where a long text is read over several calls, or there is no memory for it. Fewer than are
  // wanted where nothing may follow.
  Passes guess(std::span<Asked> asked);
  // Nobody will ask about this sequence again.
  void end(SequenceId id);

 private:
  struct Followed {
    SamplingParams params;  // without what guesses need not, and without tokens that the model lacks
    std::vector<TokenId> stop_tokens;  // that it has
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
    std::vector<std::uint64_t> words = {};  // of the tokens that may be guessed in it; empty: all
  };

  bool follow(const Asked& asked, Followed& followed);
  bool make_room(Followed& followed, std::int32_t num_tokens);
  void begin(const Asked& asked, Followed& followed);
  void add_reader(Asked& asked, std::int32_t& rows_left);
  bool find_allowed(Reader& reader) const;
  void run_pass();
  void take_results();
  void forget_others();

  LoadedModel loaded_;
  const std::int64_t distribution_bytes_;
  std::int32_t num_shared_tokens_ = 0;  // the first so many are the target's too
  kv::KvCacheManager kv_;
  runtime::ModelRunner runner_;
  std::map<SequenceId, Followed> followed_;
  std::vector<Reader> readers_;
  sched::SchedulerOutput output_;
  std::vector<runtime::SamplingTask> tasks_;
};

}  // namespace kvasir
