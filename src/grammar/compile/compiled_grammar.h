// A grammar beside a vocabulary: which tokens may follow, and where they lead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/mask_store.h"
#include "grammar/compile/row_store.h"
#include "grammar/ir/grammar.h"
#include "grammar/limits.h"
#include "grammar/regex/byte_states.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"
#include "grammar/vocabulary.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

using ConfigId = std::uint32_t;
inline constexpr ConfigId kNoConfig = 0xFFFFFFFF;

// Grows while it is used: what a text asks for first is made then. What it answers depends on the grammar and the
// text alone.
//
// Thread safety: all functions may be called from any thread.
class CompiledGrammar {
 public:
  // kUsage: the grammar has no text. kUnmet: it passes a limit, which the message names.
  static Result<std::shared_ptr<const CompiledGrammar>> create(std::unique_ptr<TermStore> terms, Grammar grammar,
                                                               std::shared_ptr<const Vocabulary> vocabulary,
                                                               const Limits& limits = {});

  const Vocabulary& vocabulary() const { return *vocabulary_; }

  // Before the first token.
  ConfigId start() const { return start_; }
  // kNoConfig: the token may not follow.
  ConfigId advance(ConfigId config, TokenId token) const;
  // Replaces the mask by the tokens that may follow.
  void fill(ConfigId config, TokenMask& mask) const;
  // The text may end here.
  bool is_accepting(ConfigId config) const;
  // .. and nothing may follow.
  bool must_end(ConfigId config) const;
  // Past a limit (the number of states, or ambiguity): what was answered since means nothing.
  bool is_exhausted() const;

 private:
  // A terminal on its way.
  struct Place {
    RowId row = 0;
    TerminalId terminal = 0;
    ByteStateId state = kDeadState;

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Config {
    std::vector<Place> places;    // ascending
    RowId boundary = kNoRow;      // a row that begins here

    friend auto operator<=>(const Config&, const Config&) = default;
  };

  CompiledGrammar(std::unique_ptr<TermStore> terms, Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary,
                  const Limits& limits);
  ConfigId intern(Config config) const;
  Config next(const Config& config, unsigned char byte) const;

  Limits limits_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Grammar grammar_;
  mutable std::mutex mutex_;  // all below
  std::unique_ptr<TermStore> terms_;
  mutable Derivatives derivatives_;
  mutable ByteStates states_;
  mutable RowStore rows_;
  mutable MaskStore masks_;
  mutable std::vector<Config> configs_;
  mutable std::map<Config, ConfigId> found_;
  mutable bool is_ambiguous_ = false;
  ConfigId start_ = 0;
};

}  // namespace kvasir::grammar
