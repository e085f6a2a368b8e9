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

// Memory that the allocator gives for ten bytes of elements: lists have room for more, and each has a header. Measured
// over the 200 largest schemas of MaskBench's dev set: 78.8 MiB for 56.5.
constexpr std::size_t kAllocatedTenths = 14;

std::size_t size_bytes_of(const Grammar& grammar) {
  return grammar.nodes.size() * (sizeof(Node) + sizeof(std::int32_t)) + grammar.terminals.size() * sizeof(Terminal) +
         grammar.rules.size() * sizeof(Rule) + grammar.loops.size() * sizeof(Loop);
}

}  // namespace

CompiledGrammar::CompiledGrammar(std::unique_ptr<TermStore> terms, Grammar grammar,
                                 std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits,
                                 std::vector<std::string> ignored)
    : limits_(limits),
      vocabulary_(std::move(vocabulary)),
      grammar_(std::move(grammar)),
      ignored_(std::move(ignored)),
      terms_(std::move(terms)),
      derivatives_(*terms_),
      states_(*terms_, derivatives_),
      rows_(grammar_, states_, limits.max_items),
      counts_(states_),
      masks_(*vocabulary_, states_, rows_, limits.max_kept_bytes / 2) {
  const auto is_recorded = [&](const Edge& edge) {
    return edge.kind == Edge::Kind::kTerminal && grammar_.terminals[edge.value].mark.is_record();
  };
  has_records_ = std::ranges::any_of(grammar_.nodes, [&](const Node& node) { return std::ranges::any_of(node.edges, is_recorded); });
  terms_->end_compile();
  here_.boundary = rows_.start();
  start_ = intern(here_);
  here_.at_text_start = vocabulary_->at_text_start() != nullptr;
  first_start_ = intern(here_);
  note_exhaustion();
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::create(
    std::unique_ptr<TermStore> terms, Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary,
    const Limits& limits, std::vector<std::string> ignored) {
  if (grammar.rules.empty()) return make_error(ErrorKind::kUsage, "the guide has no text: nothing satisfies it");
  std::shared_ptr<const CompiledGrammar> compiled(
      new CompiledGrammar(std::move(terms), std::move(grammar), std::move(vocabulary), limits, std::move(ignored)));
  if (compiled->is_exhausted()) {
    return make_error(ErrorKind::kUnmet, fmt::format("the guide has more than {} states", limits.max_terms));
  }
  return compiled;
}

std::shared_ptr<const CompiledGrammar> CompiledGrammar::renewed() const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const CompiledGrammar> known = renewed_.lock();
  if (known != nullptr && !known->is_exhausted()) return known;
  std::shared_ptr<const CompiledGrammar> made(
      new CompiledGrammar(terms_->restarted(), grammar_, vocabulary_, limits_, ignored_));
  renewed_ = made;
  return made;
}

const std::vector<std::string>& ignored_keywords(const CompiledGrammar& guide) { return guide.ignored_; }

void CompiledGrammar::note_exhaustion() const {
  if (terms_->is_exhausted() || rows_.is_exhausted()) is_exhausted_.store(true, std::memory_order_relaxed);
}

ConfigId CompiledGrammar::intern(const Config& config) const {
  bool is_new = false;
  const ConfigId id = configs_.intern(config, is_new);
  if (!is_new) return id;
  ConfigStore::Record& record = configs_.record(id);
  record.at_text_start = config.at_text_start;
  const auto is_open = [&](RowId row) {
    return row != kNoRow && (!rows_.wanted(row).empty() || !rows_.tokens(row).empty());
  };
  record.is_accepting = (config.boundary != kNoRow && rows_.is_accepting(config.boundary)) ||
                        (config.recorded != kNoRow && rows_.is_accepting(config.recorded));
  record.is_ambiguous = config.is_dead();
  record.must_end =
      !record.is_ambiguous && config.places.empty() && !is_open(config.boundary) && !is_open(config.recorded);
  if (!has_records_) return id;
  record.is_recording = record.may_be_taken = config.recorded != kNoRow;
  for (const Place& place : config.places) {
    const TextMark& mark = rows_.mark(place.terminal);
    if (!mark.is_record()) continue;
    record.is_recording = true;
    if (mark.may_run_out && counts_.behind(place.state) < TextCount::kMany) record.may_be_taken = true;
  }
  return id;
}

void CompiledGrammar::step_place(const Place& place, unsigned char byte) const {
  const ByteStateId state = states_.next(place.state, byte);
  if (state == kDeadState) return;
  const bool is_accepting = states_.is_accepting(state);
  if (is_accepting) {
    const TextMark& mark = rows_.mark(place.terminal);
    (mark.is_record() ? begun_recorded_ : begun_).push_back(rows_.advance(place.row, place.terminal));
    is_opened_ = is_opened_ || mark.kind == TextMark::Kind::kOpen;
    is_closed_ = is_closed_ || mark.kind == TextMark::Kind::kClose;
  }
  if (!is_accepting || !states_.is_final(state)) next_.places.push_back({place.row, place.terminal, state});
}

void CompiledGrammar::step_row(RowId row, unsigned char byte, bool is_recorded) const {
  for (std::size_t i = 0; i < rows_.wanted(row).size(); ++i) {  // rows may move
    const RowStore::Wanted wanted = rows_.wanted(row)[i];
    if (states_.next(wanted.state, byte) == kDeadState) continue;
    is_committed_ = is_committed_ || is_recorded;
    if (const TextMark& mark = rows_.mark(wanted.terminal); mark.is_record()) begun_mark_ = &mark;
    step_place({row, wanted.terminal, wanted.state}, byte);
  }
}

void CompiledGrammar::note_events() const {
  if (is_committed_) events_.push_back({.kind = TextEvent::Kind::kCommit, .offset = offset_});
  if (begun_mark_ != nullptr) events_.push_back({.kind = TextEvent::Kind::kBegin, .offset = offset_, .mark = *begun_mark_});
  if (is_opened_) events_.push_back({.kind = TextEvent::Kind::kOpen, .offset = offset_});
  if (is_closed_) events_.push_back({.kind = TextEvent::Kind::kClose, .offset = offset_});
}

bool CompiledGrammar::is_refused(std::uint32_t offset) const {
  return std::ranges::find(refused_, offset) != refused_.end();
}

// Replaces here_ by what a byte leads to.
void CompiledGrammar::step(unsigned char byte) const {
  next_.clear();
  begun_.clear();
  begun_recorded_.clear();
  is_committed_ = is_opened_ = is_closed_ = false;
  begun_mark_ = nullptr;
  for (const Place& place : here_.places) step_place(place, byte);
  if (here_.boundary != kNoRow) step_row(here_.boundary, byte, /*is_recorded=*/false);
  if (here_.recorded != kNoRow && !is_refused(offset_)) step_row(here_.recorded, byte, /*is_recorded=*/true);
  if (has_records_) note_events();
  if (!begun_.empty()) next_.boundary = rows_.join(begun_);
  if (!begun_recorded_.empty()) next_.recorded = rows_.join(begun_recorded_);
  if (next_.places.size() > 1) {
    std::ranges::sort(next_.places);
    next_.places.erase(std::ranges::unique(next_.places).begin(), next_.places.end());
  }
  std::swap(here_, next_);
}

// Steps while one terminal is all there is; how many bytes.
std::size_t CompiledGrammar::step_inside(std::string_view text) const {
  if (here_.places.size() != 1 || here_.boundary != kNoRow || here_.recorded != kNoRow) return 0;
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
    const std::size_t num_inside = step_inside(text);
    text.remove_prefix(num_inside);
    offset_ += static_cast<std::uint32_t>(num_inside);
    if (text.empty()) return true;
    step(static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
    ++offset_;
    if (here_.is_dead()) return false;
    if (here_.places.size() > limits_.max_places) {
      here_.clear();  // an ambiguous place
      return true;
    }
  }
}

// Behind a token that the grammar names; kNoConfig: here_ waits for no such token.
ConfigId CompiledGrammar::advance_by_token(TokenId token) const {
  begun_.clear();
  const auto add = [&](RowId from) {
    if (from == kNoRow) return false;
    const RowId row = rows_.advance_token(from, token);
    if (row != kNoRow) begun_.push_back(row);
    return row != kNoRow;
  };
  add(here_.boundary);
  if (!is_refused(0) && add(here_.recorded)) events_.push_back({.kind = TextEvent::Kind::kCommit});
  if (begun_.empty()) return kNoConfig;
  here_.clear();
  here_.boundary = rows_.join(begun_);
  here_.at_text_start = vocabulary_->at_text_start() != nullptr && vocabulary_->is_start_behind_special();
  return intern(here_);
}

// With what happens on the way in events_.
ConfigId CompiledGrammar::compute_advance(ConfigId id, TokenId token) const {
  configs_.read(id, here_);
  events_.clear();
  offset_ = 0;
  if (here_.is_dead()) return kNoConfig;
  if (const ConfigId next = advance_by_token(token); next != kNoConfig) return next;
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
  const auto target = [&](std::uint32_t value) {
    return value < kEventful ? value : eventful_[value - kEventful].next;
  };
  if (const auto found = transitions_.find(key)) return target(*found);
  const std::lock_guard lock(mutex_);
  if (const auto found = transitions_.find(key)) return target(*found);
  const ConfigId next = compute_advance(config, token);
  note_exhaustion();
  if (next != kNoConfig && transitions_.size_bytes() < limits_.max_kept_bytes / 8) keep_transition(key, next);
  return next;
}

// The transition, with what events_ has.
void CompiledGrammar::keep_transition(std::uint64_t key, ConfigId next) const {
  if (events_.empty()) {
    transitions_.insert(key, next);
    return;
  }
  if (eventful_bytes_ >= limits_.max_kept_bytes / 8) return;
  const std::uint32_t place = eventful_.grow();
  eventful_[place] = {.next = next, .events = events_};
  eventful_bytes_ += sizeof(Eventful) + events_.size() * sizeof(TextEvent);
  transitions_.insert(key, kEventful | place);
}

ConfigId CompiledGrammar::advance(ConfigId config, TokenId token, std::vector<TextEvent>& events) const {
  events.clear();
  if (token < 0 || token >= vocabulary_->num_tokens()) return kNoConfig;
  const std::uint64_t key = transition_key(config, token);
  const auto target = [&](std::uint32_t value) -> ConfigId {
    if (value < kEventful) return value;
    const Eventful& found = eventful_[value - kEventful];
    events.assign(found.events.begin(), found.events.end());
    return found.next;
  };
  if (const auto found = transitions_.find(key)) return target(*found);
  const std::lock_guard lock(mutex_);
  if (const auto found = transitions_.find(key)) return target(*found);
  const ConfigId next = compute_advance(config, token);
  note_exhaustion();
  if (next == kNoConfig) return kNoConfig;
  events.assign(events_.begin(), events_.end());
  if (transitions_.size_bytes() < limits_.max_kept_bytes / 8) keep_transition(key, next);
  return next;
}

ConfigId CompiledGrammar::advance_without(ConfigId config, TokenId token, std::span<const std::uint32_t> refused,
                                          std::vector<TextEvent>& events) const {
  const std::lock_guard lock(mutex_);
  refused_ = refused;
  const ConfigId next = compute_advance(config, token);
  refused_ = {};
  note_exhaustion();
  events.assign(events_.begin(), events_.end());
  return next;
}

ConfigId CompiledGrammar::without(ConfigId config, std::span<const std::string_view> rests) const {
  const std::lock_guard lock(mutex_);
  configs_.read(config, here_);
  const auto ends_with = [&](ByteStateId state, std::string_view rest) {
    for (const char byte : rest) state = states_.next(state, static_cast<unsigned char>(byte));
    return state != kDeadState && states_.is_accepting(state);
  };
  if (std::ranges::any_of(rests, [](std::string_view rest) { return rest.empty(); })) here_.recorded = kNoRow;
  std::erase_if(here_.places, [&](const Place& place) {
    const TextMark& mark = rows_.mark(place.terminal);
    if (!mark.is_record() || !mark.may_run_out) return false;
    const auto num_taken = std::ranges::count_if(rests, [&](std::string_view rest) { return ends_with(place.state, rest); });
    return std::cmp_less_equal(counts_.behind(place.state), num_taken);
  });
  return here_.is_dead() ? kNoConfig : intern(here_);
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
  StoredMask mask = masks_of(here_).mask(here_.places, here_.boundary, here_.recorded);
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

const StoredMask& CompiledGrammar::stored_mask(ConfigId config, StoredMask& made) const {
  const ConfigStore::Record& record = configs_.record(config);
  if (const StoredMask* kept = record.mask.load(std::memory_order_acquire)) return *kept;
  const std::lock_guard lock(mutex_);
  if (const StoredMask* kept = record.mask.load(std::memory_order_relaxed)) return *kept;
  made = compute_mask(config);
  keep(config, made);
  return made;
}

const RecordedTerminals& CompiledGrammar::fill(ConfigId config, TokenMask& mask, RecordedTerminals& kept) const {
  StoredMask made;
  const StoredMask& stored = stored_mask(config, made);
  stored.write_to(mask);
  return recorded_of(stored, made, kept);
}

const RecordedTerminals& CompiledGrammar::recorded_terminals(ConfigId config, RecordedTerminals& kept) const {
  StoredMask made;
  return recorded_of(stored_mask(config, made), made, kept);
}

// The terminals of a mask that is kept, or of `made`, which is not.
const RecordedTerminals& CompiledGrammar::recorded_of(const StoredMask& stored, const StoredMask& made,
                                                      RecordedTerminals& kept) {
  static const RecordedTerminals kNone;
  if (stored.recorded == nullptr) return kNone;
  if (&stored != &made) return *stored.recorded;
  kept = *made.recorded;
  return kept;
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
         transitions_.size_bytes() + eventful_bytes_;
}

std::size_t CompiledGrammar::size_bytes() const {
  const std::size_t kept = kept_bytes();
  const std::lock_guard lock(mutex_);
  const std::size_t elements = kept + size_bytes_of(grammar_) + terms_->size_bytes() + derivatives_.size_bytes() +
                               states_.size_bytes() + rows_.size_bytes() + configs_.size_bytes();
  return elements * kAllocatedTenths / 10;
}

}  // namespace kvasir::grammar
