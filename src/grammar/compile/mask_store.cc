#include "grammar/compile/mask_store.h"

#include <algorithm>
#include <limits>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMinSharedNodes = 48;  // a walk that visits fewer costs less than the atlas
constexpr std::size_t kWalkEntryBytes = 80;

}  // namespace

MaskStore::MaskStore(const Vocabulary& vocabulary, ByteStates& states, RowStore& rows, std::size_t max_bytes)
    : vocabulary_(vocabulary),
      states_(states),
      rows_(rows),
      walker_(vocabulary, states),
      max_bytes_(max_bytes),
      in_list_(vocabulary.num_tokens()) {}

std::shared_ptr<const Walk> MaskStore::find_walk(const Remainders& remainders, ByteStateId state,
                                                 bool keeps_all_ends) {
  const ByteStateId clamped = states_.clamped(state, vocabulary_.longest_token_characters());
  const auto [first, second] = states_.fingerprint(clamped);
  const Atlas::Key key = {.remainders = remainders.id << 1 | (keeps_all_ends ? 1 : 0), .first = first,
                          .second = second};
  Atlas& atlas = vocabulary_.atlas();
  if (std::shared_ptr<const Walk> found = atlas.find(key)) return found;
  std::shared_ptr<const Walk> made = walker_.walk(remainders, clamped, keeps_all_ends);
  if (made->num_visited >= kMinSharedNodes) atlas.insert(key, made);
  return made;
}

const Walk& MaskStore::walk(const Remainders& remainders, ByteStateId state, bool keeps_all_ends) {
  const WalkKey key = {.remainders = remainders.id, .state = std::uint64_t{state} << 1 | (keeps_all_ends ? 1 : 0)};
  if (const auto found = walks_.find(key); found != walks_.end()) return *found->second;
  std::shared_ptr<const Walk> made = find_walk(remainders, state, keeps_all_ends);
  const Walk& result = *made;
  const std::size_t made_bytes = made->size_bytes() + kWalkEntryBytes;
  if (size_bytes_ + made_bytes <= max_bytes_) {
    size_bytes_ += made_bytes;
    walks_.emplace(key, std::move(made));
  } else {
    held_.push_back(std::move(made));
  }
  return result;
}

CharacterClasses MaskStore::first_classes(RowId row) {
  CharacterClasses classes = 0;
  for (std::size_t i = 0; i < rows_.wanted(row).size(); ++i) {
    for (ByteSet live = states_.live(rows_.wanted(row)[i].state); !live.empty();) {
      classes |= character_class(live.take_first());
    }
  }
  return classes;
}

void MaskStore::add(RowId row, TerminalId terminal, ByteStateId state, const Remainders& remainders) {
  const Walk* found = &walk(remainders, state, /*keeps_all_ends=*/false);
  if (found->passed_over == 0 && found->ends == nullptr) {
    if (found->base != nullptr) bases_.push_back(found->base);
    tokens_.insert(tokens_.end(), found->tokens.begin(), found->tokens.end());
    return;
  }
  const RowId behind = rows_.advance(row, terminal);
  if (found->passed_over != 0 && (found->passed_over & first_classes(behind)) != 0) {
    found = &walk(remainders, state, /*keeps_all_ends=*/true);
  }
  if (found->base != nullptr) bases_.push_back(found->base);
  tokens_.insert(tokens_.end(), found->tokens.begin(), found->tokens.end());
  if (found->ends != nullptr) add_behind(behind, *found->ends);
}

void MaskStore::add_behind(RowId row, const Remainders& remainders) {
  const std::pair<RowId, std::uint64_t> key = {row, remainders.id};
  if (std::ranges::find(seen_behind_, key) != seen_behind_.end()) return;
  seen_behind_.push_back(key);
  for (std::size_t i = 0; i < rows_.wanted(row).size(); ++i) {  // the row may move
    const RowStore::Wanted wanted = rows_.wanted(row)[i];
    if ((states_.live(wanted.state) & remainders.first_bytes).empty()) continue;
    add(row, wanted.terminal, wanted.state, remainders);
  }
}

StoredMask MaskStore::mask(std::span<const Place> places, RowId boundary) {
  bases_.clear();
  tokens_.clear();
  held_.clear();
  seen_behind_.clear();
  for (const Place& place : places) add(place.row, place.terminal, place.state, *vocabulary_.whole());
  if (boundary != kNoRow) {
    tokens_.insert(tokens_.end(), rows_.tokens(boundary).begin(), rows_.tokens(boundary).end());
    for (std::size_t i = 0; i < rows_.wanted(boundary).size(); ++i) {
      const RowStore::Wanted wanted = rows_.wanted(boundary)[i];
      add(boundary, wanted.terminal, wanted.state, *vocabulary_.whole());
    }
  }
  return joined();
}

StoredMask MaskStore::joined() {
  StoredMask mask;
  std::ranges::sort(bases_);
  bases_.erase(std::ranges::unique(bases_).begin(), bases_.end());
  const std::size_t num_words = in_list_.words().size();
  if (bases_.size() > 1 || tokens_.size() > 2 * num_words) {
    TokenMask all(vocabulary_.num_tokens());
    for (const auto& base : bases_) all.add(base->mask);
    for (const TokenId token : tokens_) all.set(token);
    mask.base = std::make_shared<const DenseMask>(std::move(all));
    mask.count = mask.base->count;
    if (mask.count == 1) mask.only = mask.base->mask.only();
    return mask;
  }
  if (!bases_.empty()) mask.base = bases_[0];
  mask.tokens.reserve(tokens_.size());
  for (const TokenId token : tokens_) {
    if (in_list_.test(token) || (mask.base != nullptr && mask.base->mask.test(token))) continue;
    in_list_.set(token);
    mask.tokens.push_back(token);
  }
  for (const TokenId token : mask.tokens) in_list_.reset(token);
  mask.count = static_cast<std::int32_t>(mask.tokens.size()) + (mask.base ? mask.base->count : 0);
  if (mask.count == 1) mask.only = mask.tokens.empty() ? mask.base->mask.only() : mask.tokens[0];
  return mask;
}

}  // namespace kvasir::grammar
