// What lexer states allow of a vocabulary, shared by all grammars beside it.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/regex/byte_set.h"
#include "grammar/regex/character_classes.h"
#include "grammar/token_trie.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

class Vocabulary;

// Many tokens. Thread safety: immutable.
struct DenseMask {
  explicit DenseMask(TokenMask words) : mask(std::move(words)), count(mask.count()) {}
  std::size_t size_bytes() const { return sizeof(*this) + mask.words().size_bytes(); }

  const TokenMask mask;
  const std::int32_t count;
};

// Texts that go on behind a place inside tokens: trees below nodes of the vocabulary's trie, and a trie of their own
// for the others, in which equal texts are one. Thread safety: immutable.
struct Remainders {
  std::uint64_t id = 0;  // of the vocabulary's atlas; 0 is the whole vocabulary
  std::vector<TokenTrie::NodeId> tops;
  std::unique_ptr<const TokenTrie> merged;
  ByteSet first_bytes;

  std::size_t size_bytes() const {
    return sizeof(*this) + tops.size() * sizeof(TokenTrie::NodeId) + (merged ? merged->size_bytes() : 0);
  }
};

// What a lexer state takes of some remainders. Thread safety: immutable.
struct Walk {
  std::shared_ptr<const DenseMask> base;    // tokens that end inside the text or with it; may be null
  std::vector<TokenId> removed;             // .. but these of the base
  std::vector<TokenId> tokens;              // .. beside the base; one may come twice
  std::shared_ptr<const Remainders> ends;   // behind the places where the text may end; null: there are none
  // Ends before characters of these classes are left out of `ends`.
  CharacterClasses passed_over = 0;
  std::size_t num_visited = 0;  // nodes

  std::size_t size_bytes() const {
    return sizeof(*this) + (removed.size() + tokens.size()) * sizeof(TokenId) + (ends ? ends->size_bytes() : 0);
  }
};

// Remembers walks by what their states read, so that a state costs its walk once whatever the grammar. What was not
// asked for lately is forgotten: at most `max_bytes` are held.
//
// Thread safety: all functions may be called from any thread.
class Atlas {
 public:
  struct Key {
    std::uint64_t remainders = 0;  // Remainders::id
    std::uint64_t first = 0;       // the state's fingerprint
    std::uint64_t second = 0;

    friend bool operator==(const Key&, const Key&) = default;
  };

  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

  explicit Atlas(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  std::shared_ptr<const Walk> find(const Key& key);
  void insert(const Key& key, std::shared_ptr<const Walk> walk);
  // Tokens of at most num_characters characters, all of these classes.
  std::shared_ptr<const DenseMask> tokens_of(const Vocabulary& vocabulary, CharacterClasses classes,
                                             std::uint32_t num_characters);
  // Bytes that are held now.
  std::size_t size_bytes();
  std::uint64_t next_remainders_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.first ^ key.remainders * 0x9E3779B97F4A7C15; }
  };
  struct Shelf {  // what was asked for since a time
    std::unordered_map<Key, std::shared_ptr<const Walk>, Hash> walks;
    std::unordered_map<Key, std::shared_ptr<const DenseMask>, Hash> masks;
    std::size_t size_bytes = 0;
  };

  void add(const Key& key, std::shared_ptr<const Walk> walk);
  void add(const Key& key, std::shared_ptr<const DenseMask> mask);
  void make_room();

  const std::size_t max_bytes_;
  std::atomic<std::uint64_t> next_id_ = 1;
  std::mutex mutex_;  // all below
  Shelf young_;
  Shelf old_;
};

}  // namespace kvasir::grammar
