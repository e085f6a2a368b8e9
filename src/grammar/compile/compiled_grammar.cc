#include "grammar/compile/compiled_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaskEntryBytes = 32;

std::uint64_t transition_key(ConfigId config, TokenId token) {
  return std::uint64_t{config} << 32 | static_cast<std::uint32_t>(token);
}

std::size_t size_bytes_of(const Grammar& grammar) {
  return grammar.nodes.size() * (sizeof(Node) + sizeof(std::int32_t)) + grammar.terminals.size() * sizeof(Terminal) +
         grammar.rules.size() * sizeof(Rule) + grammar.loops.size() * sizeof(Loop);
}

}  // namespace

CompiledGrammar::CompiledGrammar(std::unique_ptr<TermStore> terms, Grammar grammar,
                                 std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits)
    : limits_(limits),
      vocabulary_(std::move(vocabulary)),
      grammar_(std::move(grammar)),
      terms_(std::move(terms)),
      derivatives_(*terms_),
      states_(*terms_, derivatives_),
      rows_(grammar_, states_, limits.max_items),
      masks_(*vocabulary_, states_, rows_, limits.max_kept_bytes / 2) {
  here_.boundary = rows_.start();
  start_ = intern(here_);
  here_.at_text_start = vocabulary_->at_text_start() != nullptr;
  first_start_ = intern(here_);
  note_exhaustion();
  terms_->end_compile();
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::create(
    std::unique_ptr<TermStore> terms, Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary,
    const Limits& limits) {
  if (grammar.rules.empty()) return make_error(ErrorKind::kUsage, "the guide has no text: nothing satisfies it");
  std::shared_ptr<const CompiledGrammar> compiled(
      new CompiledGrammar(std::move(terms), std::move(grammar), std::move(vocabulary), limits));
  if (compiled->is_exhausted()) {
    return make_error(ErrorKind::kUnmet, fmt::format("the guide has more than {} states", limits.max_terms));
  }
  return compiled;
}

void CompiledGrammar::note_exhaustion() const {
  if (terms_->is_exhausted() || rows_.is_exhausted()) is_exhausted_.store(true, std::memory_order_relaxed);
}

ConfigId CompiledGrammar::intern(const Config& config) const {
  bool is_new = false;
  const ConfigId id = configs_.intern(config, is_new);
  if (!is_new) return id;
  ConfigStore::Record& record = configs_.record(id);
  if (config.boundary != kNoRow) {
    record.is_accepting = rows_.is_accepting(config.boundary);
    record.must_end =
        config.places.empty() && rows_.wanted(config.boundary).empty() && rows_.tokens(config.boundary).empty();
  } else {
    record.is_ambiguous = config.places.empty();
  }
  return id;
}

// Replaces here_ by what a byte leads to.
void CompiledGrammar::step(unsigned char byte) const {
  next_.clear();
  begun_.clear();
  const auto step_place = [&](RowId row, TerminalId terminal, ByteStateId from) {
    const ByteStateId state = states_.next(from, byte);
    if (state == kDeadState) return;
    const bool is_accepting = states_.is_accepting(state);
    if (is_accepting) begun_.push_back(rows_.advance(row, terminal));
    if (!is_accepting || !states_.is_final(state)) next_.places.push_back({row, terminal, state});
  };
  for (const Place& place : here_.places) step_place(place.row, place.terminal, place.state);
  if (here_.boundary != kNoRow) {
    for (std::size_t i = 0; i < rows_.wanted(here_.boundary).size(); ++i) {  // rows may move
      const RowStore::Wanted wanted = rows_.wanted(here_.boundary)[i];
      step_place(here_.boundary, wanted.terminal, wanted.state);
    }
  }
  if (!begun_.empty()) next_.boundary = rows_.join(begun_);
  if (next_.places.size() > 1) {
    std::ranges::sort(next_.places);
    next_.places.erase(std::ranges::unique(next_.places).begin(), next_.places.end());
  }
  std::swap(here_, next_);
}

// Steps while one terminal is all there is; how many bytes.
std::size_t CompiledGrammar::step_inside(std::string_view text) const {
  if (here_.places.size() != 1 || here_.boundary != kNoRow) return 0;
  ByteStateId state = here_.places[0].state;
  std::size_t count = 0;
  for (; count < text.size(); ++count) {
    const ByteStateId next = states_.next(state, static_cast<unsigned char>(text[count]));
    if (next == kDeadState || states_.is_accepting(next)) break;
    state = next;
  }
  here_.places[0].state = state;
  return count;
}

// Whether the text may follow here_, which becomes what is behind it.
bool CompiledGrammar::step_text(std::string_view text) const {
  here_.at_text_start = false;
  while (true) {
    text.remove_prefix(step_inside(text));
    if (text.empty()) return true;
    step(static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
    if (here_.places.empty() && here_.boundary == kNoRow) return false;
    if (here_.places.size() > limits_.max_places) {
      here_.clear();  // an ambiguous place
      return true;
    }
  }
}

ConfigId CompiledGrammar::compute_advance(ConfigId id, TokenId token) const {
  configs_.read(id, here_);
  if (here_.boundary != kNoRow) {
    if (const RowId row = rows_.advance_token(here_.boundary, token); row != kNoRow) {
      here_.clear();
      here_.boundary = row;
      here_.at_text_start = vocabulary_->at_text_start() != nullptr && vocabulary_->is_start_behind_special();
      return intern(here_);
    }
  }
  if (here_.places.empty() && here_.boundary == kNoRow) return kNoConfig;
  if (here_.at_text_start && std::ranges::binary_search(vocabulary_->silent_at_start(), token)) {
    here_.at_text_start = false;
    return intern(here_);
  }
  const Vocabulary& vocabulary = here_.at_text_start ? *vocabulary_->at_text_start() : *vocabulary_;
  const std::string_view text = vocabulary.text(token);
  if (text.empty() || !step_text(text)) return kNoConfig;
  return intern(here_);
}

ConfigId CompiledGrammar::advance(ConfigId config, TokenId token) const {
  if (token < 0 || token >= vocabulary_->num_tokens()) return kNoConfig;
  const std::uint64_t key = transition_key(config, token);
  if (const auto found = transitions_.find(key)) return *found;
  const std::lock_guard lock(mutex_);
  if (const auto found = transitions_.find(key)) return *found;
  const ConfigId next = compute_advance(config, token);
  note_exhaustion();
  if (next != kNoConfig && transitions_.size_bytes() < limits_.max_kept_bytes / 8) transitions_.insert(key, next);
  return next;
}

MaskStore& CompiledGrammar::masks_of(const Config& config) const {
  if (!config.at_text_start) return masks_;
  if (first_masks_ == nullptr) {
    first_masks_ = std::make_unique<MaskStore>(*vocabulary_->at_text_start(), states_, rows_,
                                               limits_.max_kept_bytes / 8);
  }
  return *first_masks_;
}

StoredMask CompiledGrammar::compute_mask(ConfigId id) const {
  configs_.read(id, here_);
  StoredMask mask = masks_of(here_).mask(here_.places, here_.boundary);
  if (here_.at_text_start) {
    for (const TokenId token : vocabulary_->silent_at_start()) {
      if (mask.test(token)) continue;
      mask.tokens.push_back(token);
      ++mask.count;
      mask.only = mask.count == 1 ? token : kNoToken;
    }
  }
  note_exhaustion();
  return mask;
}

void CompiledGrammar::fill(ConfigId config, TokenMask& mask) const {
  const ConfigStore::Record& record = configs_.record(config);
  if (const StoredMask* kept = record.mask.load(std::memory_order_acquire)) return kept->write_to(mask);
  const std::lock_guard lock(mutex_);
  if (const StoredMask* kept = record.mask.load(std::memory_order_relaxed)) return kept->write_to(mask);
  StoredMask made = compute_mask(config);
  made.write_to(mask);
  keep(config, std::move(made));
}

CompiledGrammar::Choices CompiledGrammar::choices(ConfigId config) const {
  const ConfigStore::Record& record = configs_.record(config);
  if (const StoredMask* kept = record.mask.load(std::memory_order_acquire)) return {kept->count, kept->only};
  const std::lock_guard lock(mutex_);
  if (const StoredMask* kept = record.mask.load(std::memory_order_relaxed)) return {kept->count, kept->only};
  StoredMask made = compute_mask(config);
  const Choices choices = {made.count, made.only};
  keep(config, std::move(made));
  return choices;
}

void CompiledGrammar::keep(ConfigId config, StoredMask mask) const {
  const std::size_t size_bytes = mask.size_bytes() + kMaskEntryBytes;
  if (mask_bytes_ + size_bytes > limits_.max_kept_bytes / 4) return;
  mask_bytes_ += size_bytes;
  configs_.keep_mask(config, std::move(mask));
}

std::size_t CompiledGrammar::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return mask_bytes_ + masks_.size_bytes() + (first_masks_ ? first_masks_->size_bytes() : 0) +
         transitions_.size_bytes();
}

std::size_t CompiledGrammar::size_bytes() const {
  const std::size_t kept = kept_bytes();
  const std::lock_guard lock(mutex_);
  return kept + size_bytes_of(grammar_) + terms_->size_bytes() + derivatives_.size_bytes() + states_.size_bytes() +
         rows_.size_bytes() + configs_.size_bytes();
}

}  // namespace kvasir::grammar
