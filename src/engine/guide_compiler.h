// Guides beside the vocabulary of one model.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/guide_cache.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/vocabulary.h"
#include "kvasir/engine.h"
#include "text/tokenizer.h"

namespace kvasir {

// Keeps grammars, for agents ask with the same schema again and again. One thread of low priority compiles for callers
// that must not wait.
//
// Thread safety: all functions may be called from any thread.
class GuideCompiler {
 public:
  // The tokenizer outlives this; null: the model has none.
  // `max_bytes`: of the grammars, the atlas and what compiling takes, without the vocabulary's tokens and trie.
  GuideCompiler(const text::Tokenizer* tokenizer, std::int64_t max_bytes)
      : tokenizer_(tokenizer),
        max_bytes_(max_bytes),
        part_bytes_(std::min(static_cast<std::int64_t>(grammar::Atlas::kMaxBytes), max_bytes / 8)),
        cache_(max_bytes - 9 * part_bytes_ / 2) {}  // three sixteenths are what the allocator keeps besides
  ~GuideCompiler() { close(); }

  // Errors: as Engine::prepare_guide() has them. The message begins with the guide's field and says where in the
  // guide; the parameter is the field.
  Result<CompiledGuide> compile(const Guide& guide, std::string_view tenant);
  // As Engine::prepare_guide().
  void prepare(const Guide& guide, std::string_view tenant, std::stop_token stop, Engine::GuideSink sink);
  // As GuideCache::renew().
  CompiledGuide renewed(const CompiledGuide& guide);
  // Answers those who wait with kUnavailable. No sink is called afterwards but at once, with the same error.
  void close();
  // Fills in what is counted of guides.
  void describe(EngineStats& stats) const;
  // Whether the grammar is of this model's vocabulary.
  bool is_mine(const grammar::CompiledGrammar& guide);

 private:
  static constexpr std::size_t kMaxWaiting = 256;
  struct Job {
    Guide guide;
    std::string tenant;
    std::stop_token stop;
    Engine::GuideSink sink;
  };

  std::shared_ptr<const grammar::Vocabulary> vocabulary();
  CompiledGuide find(const std::string& key, std::string_view tenant);
  Result<CompiledGuide> compile_anew(const Guide& guide, std::string key, std::string_view tenant);
  Result<CompiledGuide> try_compile(const Guide& guide);
  Status enqueue(Job& job);
  void run(const std::stop_token& stop);

  const text::Tokenizer* tokenizer_;
  const std::int64_t max_bytes_;
  const std::int64_t part_bytes_;  // for compiling, and for each of the two atlases that a vocabulary may have
  std::mutex closing_;  // before mutex_
  std::once_flag vocabulary_made_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  mutable std::mutex mutex_;  // all below
  mutable GuideCache cache_;
  std::deque<Job> waiting_;
  std::int64_t num_compiled_ = 0, num_known_ = 0, num_refused_ = 0;
  double compile_seconds_ = 0.0;
  std::int64_t freed_bytes_ = 0;  // since the heap was trimmed
  std::map<std::string, std::int64_t> refusals_;  // by keyword_of()
  bool is_closed_ = false;
  std::condition_variable_any changed_;
  std::jthread thread_;  // begins with the first job
};

}  // namespace kvasir
