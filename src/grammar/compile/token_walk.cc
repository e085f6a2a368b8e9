#include "grammar/compile/token_walk.h"

#include <algorithm>

namespace kvasir::grammar {
namespace {

constexpr std::uint32_t kMaxMergedNodes = 512;  // of a tree that is merged with others
constexpr unsigned char kCommonLead = 0xE3;     // of Kana and others
constexpr std::size_t kMaxMergedEntries = 1 << 16;
constexpr std::uint32_t kMinBaseClasses = 4;
constexpr std::uint32_t kMinBaseCharacters = 2;

}  // namespace

// A run from the whole vocabulary's root takes groups of tokens at once: that of the state, or nearly that of the
// state behind most characters.
void TokenWalker::choose_base(const Remainders& remainders, ByteStateId state) {
  base_ = {};
  if (remainders.id != 0) return;
  const auto is_wide = [](const ByteStates::Run& run) {
    return run.num_characters >= kMinBaseCharacters && bit_count(run.classes) >= kMinBaseClasses;
  };
  ByteStates::Run run = states_.run(state);
  const bool is_approximate = !is_wide(run);
  if (is_approximate) {
    const ByteStateId target = states_.main_target(state);
    if (target == kDeadState) return;
    run = states_.run(target);
    if (!is_wide(run)) return;
  }
  if (run.may_end && keeps_all_ends_) return;
  const std::uint32_t num_characters = std::min(run.num_characters, vocabulary_.longest_token_characters());
  auto mask = vocabulary_.atlas().tokens_of(vocabulary_, run.classes, num_characters);
  if (static_cast<std::size_t>(mask->count) <= mask->mask.words().size()) return;
  base_ = {.mask = std::move(mask),
           .classes = run.classes,
           .num_characters = num_characters,
           .bound = run.num_characters,
           .is_approximate = is_approximate};
  if (run.may_end) walk_.passed_over |= run.classes;
}

void TokenWalker::remove(std::span<const TokenTrie::Entry> entries) {
  for (const TokenTrie::Entry& entry : entries) {
    if (base_.mask->mask.test(entry.token)) walk_.removed.push_back(entry.token);
  }
}

// Takes out of the base what goes on with bytes that the frame's state does not take.
void TokenWalker::remove_dead(const Place& place, const Frame& frame) {
  if (!base_.is_approximate || (frame.prefix & ~base_.classes) != 0) return;
  if ((base_.classes & ~frame.run.classes) == 0 && frame.run.num_characters >= base_.num_characters) return;
  const TokenTrie& trie = *place.trie;
  const auto is_in_base = [&](unsigned char byte) { return (character_class(byte) & ~base_.classes) == 0; };
  if (frame.fan != nullptr) {
    for (ByteSet dead = frame.fan->bytes - states_.live(frame.state); !dead.empty();) {
      const unsigned char byte = dead.take_first();
      if (is_in_base(byte)) remove(trie.entries_within(trie.fan_child(*frame.fan, byte)));
    }
    return;
  }
  for (TokenTrie::NodeId child = place.node + 1; child < trie.skip(place.node); child = trie.skip(child)) {
    if (is_in_base(trie.byte(child)) && !states_.live(frame.state).test(trie.byte(child))) {
      remove(trie.entries_within(child));
    }
  }
}

void TokenWalker::add(std::span<const TokenTrie::Entry> entries) {
  for (const TokenTrie::Entry& entry : entries) walk_.tokens.push_back(entry.token);
}

void TokenWalker::open(const Place& place, ByteStateId state, CharacterClasses prefix, std::uint32_t num_characters) {
  Frame frame = {.trie = place.trie,
                 .next = place.node + 1,
                 .end = place.trie->skip(place.node),
                 .fan = place.trie->fan(place.node),
                 .live = states_.live(state),
                 .state = state,
                 .run = {},
                 .run_beyond_ascii = {},
                 .prefix = prefix,
                 .num_characters = num_characters};
  if (frame.fan != nullptr) frame.live = frame.live & frame.fan->bytes;
  frame.run = states_.run(state);
  if ((frame.run.classes & kBeyondAscii) == 0 && frame.live.test(kCommonLead)) {
    const ByteStateId target = states_.beyond_ascii_target(state);
    if (target != kDeadState) frame.run_beyond_ascii = states_.run(target);
  }
  remove_dead(place, frame);
  if (!frame.live.empty()) frames_.push_back(frame);
}

bool TokenWalker::take_child(Frame& frame, TokenTrie::NodeId& child) {
  if (frame.fan != nullptr) {
    if (frame.live.empty()) return false;
    child = frame.trie->fan_child(*frame.fan, frame.live.take_first());
    return true;
  }
  while (frame.next < frame.end) {
    child = frame.next;
    frame.next = frame.trie->skip(child);
    if (frame.live.test(frame.trie->byte(child))) return true;
  }
  return false;
}

bool TokenWalker::is_taken_whole(const ByteStates::Run& run, CharacterClasses classes, std::uint32_t num_characters) {
  if ((classes & ~run.classes) != 0 || num_characters > run.num_characters) return false;
  if (!run.may_end) return true;
  if (keeps_all_ends_) return false;
  walk_.passed_over |= run.classes;
  return true;
}

// Behind some characters a subtree holds what is in the base and what is too long for the run, and no more.
bool TokenWalker::is_known(const ByteStates::Run& run, CharacterClasses classes, CharacterClasses prefix,
                           std::uint32_t num_characters) const {
  return base_.mask != nullptr && !base_.is_approximate && run.is_bounded && (classes & ~run.classes) == 0 &&
         ((prefix | classes) & ~base_.classes) == 0 && num_characters + run.num_characters == base_.bound &&
         (!run.may_end || !keeps_all_ends_);
}

void TokenWalker::visit(Frame& frame, TokenTrie::NodeId child) {
  const TokenTrie& trie = *frame.trie;
  ++walk_.num_visited;
  const CharacterClasses classes = trie.classes_from(child);
  const std::uint32_t num_characters = trie.characters_from(child);
  const unsigned char byte = trie.byte(child);
  if (is_known(frame.run, classes, frame.prefix, frame.num_characters)) return;
  bool is_whole = is_taken_whole(frame.run, classes, num_characters);
  ByteStateId next = kDeadState;
  bool is_between = false;
  if (!is_whole) {
    next = states_.next(frame.state, byte);
    is_between = states_.is_between(next);
    if (is_between && is_known(states_.run(next), classes, frame.prefix, frame.num_characters + 1)) return;
    if (byte >= 0x80) is_whole = is_taken_whole(frame.run_beyond_ascii, classes, num_characters - 1);
    is_whole = is_whole || (is_between && trie.has_children(child) && is_taken_whole(states_.run(next), classes, num_characters - 1));
  }
  if (is_whole) {
    if (!base_.covers(frame.prefix | classes, frame.num_characters + num_characters)) add(trie.entries_within(child));
    return;
  }
  const CharacterClasses prefix = frame.prefix | character_class(byte);
  const std::uint32_t count = frame.num_characters + (is_between ? 1 : 0);
  if (!is_between || !base_.covers(prefix, count)) add(trie.entries_at(child));
  if (!trie.has_children(child)) return;
  if (states_.is_accepting(next)) ends_.push_back({&trie, child});
  open({&trie, child}, next, prefix, count);  // `frame` is no longer valid
}

void TokenWalker::walk_from(const Place& top, ByteStateId state) {
  open(top, state, 0, 0);
  while (!frames_.empty()) {
    TokenTrie::NodeId child = 0;
    if (take_child(frames_.back(), child)) {
      visit(frames_.back(), child);
    } else {
      frames_.pop_back();
    }
  }
}

// Many tokens beside the base become a base of their own.
void TokenWalker::add_base_and_tokens() {
  const std::size_t num_words = (static_cast<std::size_t>(vocabulary_.num_tokens()) + 63) / 64;
  if (walk_.tokens.size() + walk_.removed.size() <= num_words) {
    walk_.base = base_.mask;
    walk_.tokens.shrink_to_fit();
    walk_.removed.shrink_to_fit();
    return;
  }
  TokenMask mask = base_.mask ? base_.mask->mask : TokenMask(vocabulary_.num_tokens());
  for (const TokenId token : walk_.removed) mask.reset(token);
  walk_.removed = {};
  for (const TokenId token : walk_.tokens) mask.set(token);
  walk_.base = std::make_shared<const DenseMask>(std::move(mask));
  walk_.tokens = {};
}

std::shared_ptr<const Remainders> TokenWalker::remainders_behind_ends() {
  if (ends_.empty()) return nullptr;
  auto remainders = std::make_shared<Remainders>();
  remainders->id = vocabulary_.atlas().next_remainders_id();
  std::vector<TokenTrie::Entry> entries;
  for (const Place& end : ends_) {
    const TokenTrie& trie = *end.trie;
    const bool is_large = trie.skip(end.node) - end.node > kMaxMergedNodes || entries.size() > kMaxMergedEntries;
    if (is_large && &trie == &vocabulary_.trie()) {
      remainders->tops.push_back(end.node);
      for (TokenTrie::NodeId child = end.node + 1; child < trie.skip(end.node); child = trie.skip(child)) {
        remainders->first_bytes.set(trie.byte(child));
      }
      continue;
    }
    const auto depth = static_cast<std::uint32_t>(trie.depth(end.node));
    for (const TokenTrie::Entry& entry : trie.entries_below(end.node)) {
      entries.push_back({entry.token, entry.offset + depth});
    }
  }
  if (!entries.empty()) {
    auto merged = std::make_unique<const TokenTrie>(vocabulary_.texts(), std::move(entries));
    remainders->first_bytes |= merged->first_bytes();
    remainders->merged = std::move(merged);
  }
  return remainders;
}

std::shared_ptr<const Walk> TokenWalker::walk(const Remainders& remainders, ByteStateId state, bool keeps_all_ends) {
  keeps_all_ends_ = keeps_all_ends;
  walk_ = {};
  ends_.clear();
  choose_base(remainders, state);
  for (const TokenTrie::NodeId top : remainders.tops) walk_from({&vocabulary_.trie(), top}, state);
  if (remainders.merged) walk_from({remainders.merged.get(), 0}, state);
  add_base_and_tokens();
  walk_.ends = remainders_behind_ends();
  return std::make_shared<const Walk>(std::move(walk_));
}

}  // namespace kvasir::grammar
