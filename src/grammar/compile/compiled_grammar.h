// A grammar beside a vocabulary: which tokens may follow, and where they lead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/config.h"
#include "grammar/compile/config_store.h"
#include "grammar/compile/ignored_keywords.h"
#include "grammar/compile/mask_store.h"
#include "grammar/compile/recorded_terminal.h"
#include "grammar/compile/row_store.h"
#include "grammar/compile/text_count.h"
#include "grammar/compile/text_event.h"
#include "grammar/compile/transition_table.h"
#include "grammar/ir/grammar.h"
#include "grammar/limits.h"
#include "grammar/regex/byte_states.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"
#include "grammar/vocabulary.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Grows while it is used: what a text asks for first is made then. What it answers depends on the grammar and the
// text alone.
//
// Thread safety: all functions may be called from any thread. Answers that are remembered take no lock.
class CompiledGrammar {
 public:
  // `ignored`: what ignored_keywords() will say.
  // kUsage: the grammar has no text. kUnmet: it passes a limit, which the message names.
  static Result<std::shared_ptr<const CompiledGrammar>> create(std::unique_ptr<TermStore> terms, Grammar grammar,
                                                               std::shared_ptr<const Vocabulary> vocabulary,
                                                               const Limits& limits = {},
                                                               std::vector<std::string> ignored = {});

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // The tokens as they follow the config.
  const Vocabulary& vocabulary(ConfigId config) const {
    return configs_.record(config).at_text_start ? *vocabulary_->at_text_start() : *vocabulary_;
  }

  // Before the first token, which at_text_start says begins a text (Vocabulary::at_text_start).
  ConfigId start(bool at_text_start = false) const { return at_text_start ? first_start_ : start_; }
  // kNoConfig: the token may not follow.
  ConfigId advance(ConfigId config, TokenId token) const;
  // Replaces the mask by the tokens that may follow. Requires: a mask of as many tokens as the vocabulary has.
  void fill(ConfigId config, TokenMask& mask) const;

  // Some terminal's text is recorded (TextMark). Where tokens lead depends then on what was recorded before, and what
  // is said of a config alone is so when nothing was. The functions up to recorded_terminals() are for who knows.
  bool has_records() const { return has_records_; }
  // As advance(); `events` becomes what happens on the way, in its order.
  ConfigId advance(ConfigId config, TokenId token, std::vector<TextEvent>& events) const;
  // .. where no text is recorded that would be at one of these offsets.
  ConfigId advance_without(ConfigId config, TokenId token, std::span<const std::uint32_t> refused,
                           std::vector<TextEvent>& events) const;
  // The config without what has no other end than recorded texts. `rests` are those that begin as the text at hand,
  // from there on.
  ConfigId without(ConfigId config, std::span<const std::string_view> rests) const;
  bool is_recording(ConfigId config) const { return configs_.record(config).is_recording; }
  bool may_be_taken(ConfigId config) const { return configs_.record(config).may_be_taken; }
  // fill(), and the terminals whose texts some token ends or goes on with; `kept` holds them where need be.
  const RecordedTerminals& fill(ConfigId config, TokenMask& mask, RecordedTerminals& kept) const;
  const RecordedTerminals& recorded_terminals(ConfigId config, RecordedTerminals& kept) const;
  // How many tokens may follow, and which one when it is the only one (kNoToken otherwise).
  struct Choices {
    std::int32_t count = 0;
    TokenId only = kNoToken;
  };
  Choices choices(ConfigId config) const;
  // The text may end here.
  bool is_accepting(ConfigId config) const { return configs_.record(config).is_accepting; }
  // .. and nothing may follow.
  bool must_end(ConfigId config) const { return configs_.record(config).must_end; }
  // The text is one in more ways than Limits::max_places: nothing may follow, and it may not end.
  bool is_ambiguous(ConfigId config) const { return configs_.record(config).is_ambiguous; }
  // Past a limit of states: what was answered since means nothing.
  bool is_exhausted() const { return is_exhausted_.load(std::memory_order_relaxed); }
  // The same grammar as it was when it was compiled. An answer goes on there where this one is exhausted. Those who ask
  // while somebody holds it share one.
  std::shared_ptr<const CompiledGrammar> renewed() const;

  // What is remembered. Bounded by Limits::max_kept_bytes.
  std::size_t kept_bytes() const;
  // With all that the grammar is made of. It grows with use.
  std::size_t size_bytes() const;

 private:
  friend const std::vector<std::string>& ignored_keywords(const CompiledGrammar& guide);
  CompiledGrammar(std::unique_ptr<TermStore> terms, Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary,
                  const Limits& limits, std::vector<std::string> ignored);
  ConfigId intern(const Config& config) const;
  // All below: with mutex_ held.
  ConfigId compute_advance(ConfigId config, TokenId token) const;
  ConfigId advance_by_token(TokenId token) const;  // of here_
  bool step_text(std::string_view text) const;
  std::size_t step_inside(std::string_view text) const;
  void step(unsigned char byte) const;
  void step_row(RowId row, unsigned char byte, bool is_recorded) const;
  void step_place(const Place& place, unsigned char byte) const;
  void note_events() const;
  const StoredMask& stored_mask(ConfigId config, StoredMask& made) const;
  bool is_refused(std::uint32_t offset) const;
  StoredMask compute_mask(ConfigId config) const;
  MaskStore& masks_of(const Config& config) const;
  void keep(ConfigId config, StoredMask mask) const;
  void keep_transition(std::uint64_t key, ConfigId next) const;
  static const RecordedTerminals& recorded_of(const StoredMask& stored, const StoredMask& made, RecordedTerminals& kept);
  void note_exhaustion() const;

  Limits limits_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Grammar grammar_;
  std::vector<std::string> ignored_;
  ConfigId start_ = 0;
  ConfigId first_start_ = 0;
  mutable std::atomic<bool> is_exhausted_ = false;
  mutable ConfigStore configs_;             // records are read without the mutex
  mutable TransitionTable transitions_;     // by config << 32 | token; read without the mutex
  // A transition with events is kEventful and its place here.
  struct Eventful {
    ConfigId next = kNoConfig;
    std::vector<TextEvent> events;
  };
  static constexpr std::uint32_t kEventful = 0x80000000;
  mutable AppendOnly<Eventful> eventful_;
  mutable std::size_t eventful_bytes_ = 0;
  bool has_records_ = false;
  mutable std::mutex mutex_;                // all growth, and all below
  mutable std::weak_ptr<const CompiledGrammar> renewed_;
  std::unique_ptr<TermStore> terms_;
  mutable Derivatives derivatives_;
  mutable ByteStates states_;
  mutable RowStore rows_;
  mutable TextCount counts_;
  mutable MaskStore masks_;
  mutable std::unique_ptr<MaskStore> first_masks_;  // at the start of a text
  mutable std::size_t mask_bytes_ = 0;
  mutable Config here_;
  mutable Config next_;
  mutable std::vector<RowId> begun_;
  mutable std::vector<RowId> begun_recorded_;
  mutable std::vector<TextEvent> events_;  // so far
  mutable std::span<const std::uint32_t> refused_;
  mutable std::uint32_t offset_ = 0;       // of the byte at hand
  // These are of the byte at hand:
  mutable bool is_committed_ = false;
  mutable bool is_opened_ = false;
  mutable bool is_closed_ = false;
  mutable const TextMark* begun_mark_ = nullptr;
};

}  // namespace kvasir::grammar
