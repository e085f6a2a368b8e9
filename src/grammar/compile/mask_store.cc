#include "grammar/compile/mask_store.h"

#include <algorithm>
#include <limits>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMinSharedNodes = 48;  // a walk that visits fewer costs less than the atlas
constexpr std::size_t kWalkEntryBytes = 80;

void set_only(StoredMask& mask, std::int32_t num_tokens) {
  if (mask.count != 1) return;
  TokenMask words(num_tokens);
  mask.write_to(words);
  mask.only = words.only();
}

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

void MaskStore::add(const Walk& walk) {
  if (walk.base != nullptr && std::ranges::find(based_, &walk) == based_.end()) based_.push_back(&walk);
  tokens_.insert(tokens_.end(), walk.tokens.begin(), walk.tokens.end());
}

// A terminal whose text is recorded, and whose scope was there before the token, or has another text of it.
void MaskStore::note_recorded(const TextMark& mark, const SharedRemainders& remainders) {
  const std::uint32_t num_levels = mark.num_levels();
  if (passed_.num_opened <= num_levels) {
    recorded_.terminals.push_back({.remainders = remainders,
                                   .mark = mark,
                                   .num_closed = passed_.num_closed + num_levels - passed_.num_opened,
                                   .has_begun = is_place_});
  }
  if ((passed_.texts >> num_levels & 1) == 0) return;
  const auto add_all = [&](std::span<const TokenTrie::Entry> entries) {
    for (const TokenTrie::Entry& entry : entries) recorded_.doubtful.push_back(entry.token);
  };
  for (const TokenTrie::NodeId top : remainders->tops) add_all(vocabulary_.trie().entries_below(top));
  if (remainders->merged) add_all(remainders->merged->entries_below(0));
}

void MaskStore::pass(const TextMark& mark) {
  switch (mark.kind) {
    case TextMark::Kind::kNone:
      return;
    case TextMark::Kind::kOpen:
      ++passed_.num_opened;
      passed_.texts <<= 1;
      return;
    case TextMark::Kind::kClose:
      passed_.texts >>= 1;
      if (passed_.num_opened > 0) {
        --passed_.num_opened;
      } else {
        ++passed_.num_closed;
      }
      return;
    case TextMark::Kind::kRecord:
      passed_.texts |= 1U << mark.num_levels();
  }
}

void MaskStore::add(RowId row, TerminalId terminal, ByteStateId state, const SharedRemainders& remainders) {
  const TextMark& mark = rows_.mark(terminal);
  if (mark.is_record()) note_recorded(mark, remainders);
  const Walk* found = &walk(*remainders, state, /*keeps_all_ends=*/false);
  if (found->passed_over == 0 && found->ends == nullptr) {
    add(*found);
    return;
  }
  const RowId behind = rows_.advance(row, terminal);
  if (found->passed_over != 0 && (found->passed_over & first_classes(behind)) != 0) {
    found = &walk(*remainders, state, /*keeps_all_ends=*/true);
  }
  add(*found);
  if (found->ends == nullptr) return;
  const Passed passed = passed_;
  const bool is_place = is_place_;
  is_place_ = false;
  pass(mark);
  add_behind(behind, found->ends);
  passed_ = passed;
  is_place_ = is_place;
}

void MaskStore::add_behind(RowId row, const SharedRemainders& remainders) {
  const Behind key = {row, remainders->id, passed_};
  if (std::ranges::find(seen_behind_, key) != seen_behind_.end()) return;
  seen_behind_.push_back(key);
  for (std::size_t i = 0; i < rows_.wanted(row).size(); ++i) {  // the row may move
    const RowStore::Wanted wanted = rows_.wanted(row)[i];
    if ((states_.live(wanted.state) & remainders->first_bytes).empty()) continue;
    add(row, wanted.terminal, wanted.state, remainders);
  }
}

void MaskStore::add_row(RowId row) {
  if (row == kNoRow) return;
  tokens_.insert(tokens_.end(), rows_.tokens(row).begin(), rows_.tokens(row).end());
  for (std::size_t i = 0; i < rows_.wanted(row).size(); ++i) {
    const RowStore::Wanted wanted = rows_.wanted(row)[i];
    add(row, wanted.terminal, wanted.state, vocabulary_.whole());
  }
}

StoredMask MaskStore::mask(std::span<const Place> places, RowId boundary, RowId recorded) {
  based_.clear();
  tokens_.clear();
  held_.clear();
  seen_behind_.clear();
  recorded_ = {};
  passed_ = {};
  is_place_ = true;
  for (const Place& place : places) add(place.row, place.terminal, place.state, vocabulary_.whole());
  is_place_ = false;
  add_row(boundary);
  if (recorded != kNoRow) passed_.texts = 3;  // of either level
  add_row(recorded);
  StoredMask mask = joined();
  if (!recorded_.empty()) mask.recorded = std::make_shared<const RecordedTerminals>(std::move(recorded_));
  return mask;
}

StoredMask MaskStore::joined_dense() {
  TokenMask all(vocabulary_.num_tokens());
  for (const Walk* walk : based_) {
    if (walk->removed.empty()) {
      all.add(walk->base->mask);
      continue;
    }
    TokenMask own = walk->base->mask;
    for (const TokenId token : walk->removed) own.reset(token);
    all.add(own);
  }
  for (const TokenId token : tokens_) all.set(token);
  StoredMask mask = {.base = std::make_shared<const DenseMask>(std::move(all))};
  mask.count = mask.base->count;
  set_only(mask, vocabulary_.num_tokens());
  return mask;
}

StoredMask MaskStore::joined() {
  const std::size_t num_words = in_list_.words().size();
  if (based_.size() > 1 || tokens_.size() > 2 * num_words) return joined_dense();
  StoredMask mask;
  const TokenMask* base = nullptr;
  if (!based_.empty()) {
    mask.base = based_[0]->base;
    base = &mask.base->mask;
    for (const TokenId token : based_[0]->removed) in_list_.set(token);
    for (const TokenId token : tokens_) in_list_.reset(token);
    for (const TokenId token : based_[0]->removed) {
      if (in_list_.test(token)) mask.removed.push_back(token);
      in_list_.reset(token);
    }
  }
  mask.tokens.reserve(tokens_.size());
  for (const TokenId token : tokens_) {
    if (in_list_.test(token) || (base != nullptr && base->test(token))) continue;
    in_list_.set(token);
    mask.tokens.push_back(token);
  }
  for (const TokenId token : mask.tokens) in_list_.reset(token);
  mask.count = static_cast<std::int32_t>(mask.tokens.size()) +
               (base != nullptr ? mask.base->count - static_cast<std::int32_t>(mask.removed.size()) : 0);
  set_only(mask, vocabulary_.num_tokens());
  return mask;
}

}  // namespace kvasir::grammar
