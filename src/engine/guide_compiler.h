// Guides beside the vocabulary of one model.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/vocabulary.h"
#include "kvasir/guide.h"
#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir {

// Keeps the last grammars, for agents ask with the same schema again and again.
//
// Thread safety: all functions may be called from any thread.
class GuideCompiler {
 public:
  // The tokenizer outlives this; null: the model has none.
  explicit GuideCompiler(const text::Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Errors: kUsage for a guide that is wrong or that no text fulfils, kUnmet for one that is not supported or too
  // large; the message says where.
  Result<std::shared_ptr<const grammar::CompiledGrammar>> compile(const Guide& guide);

 private:
  using Compiled = std::shared_ptr<const grammar::CompiledGrammar>;
  static constexpr std::size_t kMaxKept = 64;

  std::shared_ptr<const grammar::Vocabulary> vocabulary();

  const text::Tokenizer* tokenizer_;
  std::mutex mutex_;  // all below
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  std::list<std::pair<std::string, Compiled>> kept_;  // by guide_key(), the last used first
};

}  // namespace kvasir
