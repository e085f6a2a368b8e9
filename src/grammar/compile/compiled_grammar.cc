#include "grammar/compile/compiled_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvasir::grammar {

CompiledGrammar::CompiledGrammar(std::unique_ptr<TermStore> terms, Grammar grammar,
                                 std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits)
    : limits_(limits),
      vocabulary_(std::move(vocabulary)),
      grammar_(std::move(grammar)),
      terms_(std::move(terms)),
      derivatives_(*terms_),
      states_(*terms_, derivatives_),
      rows_(grammar_, states_, limits.max_items),
      masks_(*vocabulary_, states_, rows_) {
  start_ = intern({.places = {}, .boundary = rows_.start()});
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

ConfigId CompiledGrammar::intern(Config config) const {
  const auto [found, is_new] = found_.try_emplace(std::move(config), static_cast<ConfigId>(configs_.size()));
  if (is_new) configs_.push_back(found->first);
  return found->second;
}

CompiledGrammar::Config CompiledGrammar::next(const Config& config, unsigned char byte) const {
  Config result;
  std::vector<RowId> begun;
  const auto step = [&](RowId row, TerminalId terminal, ByteStateId from) {
    const ByteStateId state = states_.next(from, byte);
    if (state == kDeadState) return;
    if (states_.is_accepting(state)) begun.push_back(rows_.advance(row, terminal));
    if (!states_.is_final(state)) result.places.push_back({row, terminal, state});
  };
  for (const Place& place : config.places) step(place.row, place.terminal, place.state);
  if (config.boundary != kNoRow) {
    const std::vector<RowStore::Wanted> wanted(rows_.wanted(config.boundary).begin(),
                                               rows_.wanted(config.boundary).end());
    for (const RowStore::Wanted& wants : wanted) step(config.boundary, wants.terminal, wants.state);
  }
  if (!begun.empty()) result.boundary = rows_.join(begun);
  std::ranges::sort(result.places);
  result.places.erase(std::ranges::unique(result.places).begin(), result.places.end());
  if (result.places.size() > limits_.max_places) is_ambiguous_ = true;
  return result;
}

ConfigId CompiledGrammar::advance(ConfigId id, TokenId token) const {
  const std::lock_guard lock(mutex_);
  if (token < 0 || token >= vocabulary_->num_tokens()) return kNoConfig;
  Config config = configs_[id];
  if (config.boundary != kNoRow) {
    if (const RowId row = rows_.advance_token(config.boundary, token); row != kNoRow) {
      return intern({.places = {}, .boundary = row});
    }
  }
  const std::string_view text = vocabulary_->text(token);
  if (text.empty()) return kNoConfig;
  for (const char byte : text) {
    config = next(config, static_cast<unsigned char>(byte));
    if (config.places.empty() && config.boundary == kNoRow) return kNoConfig;
  }
  return intern(std::move(config));
}

void CompiledGrammar::fill(ConfigId id, TokenMask& mask) const {
  const std::lock_guard lock(mutex_);
  mask.clear();
  const Config& config = configs_[id];
  for (const Place& place : config.places) masks_.add(place.row, place.terminal, place.state, mask);
  if (config.boundary != kNoRow) masks_.add(config.boundary, mask);
}

bool CompiledGrammar::is_accepting(ConfigId id) const {
  const std::lock_guard lock(mutex_);
  return configs_[id].boundary != kNoRow && rows_.is_accepting(configs_[id].boundary);
}

bool CompiledGrammar::must_end(ConfigId id) const {
  const std::lock_guard lock(mutex_);
  const Config& config = configs_[id];
  return config.places.empty() && config.boundary != kNoRow && rows_.wanted(config.boundary).empty() &&
         rows_.tokens(config.boundary).empty();
}

bool CompiledGrammar::is_exhausted() const {
  const std::lock_guard lock(mutex_);
  return terms_->is_exhausted() || rows_.is_exhausted() || is_ambiguous_;
}

}  // namespace kvasir::grammar
