// SentencePiece's precompiled character map: what characters are replaced by before a Unigram model sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::text {

// A double-array trie over UTF-8 (the darts-clone library's units of 32 bits) and a pool of replacements, each
// ended by a zero byte. Graphemes of less than 6 bytes are looked up as a whole first, then characters, as the
// library `tokenizers` does it.
//
// Thread safety: immutable.
class Charsmap {
 public:
  // The bytes as in the file: the trie's size in bytes (32 bits, little endian), the trie, the pool. kBadFile: the
  // sizes do not agree.
  static Result<Charsmap> parse(std::string_view bytes);

  // Requires: text is well-formed UTF-8. The result is, too.
  std::string normalize(std::string_view text) const;

  // In bytes, of any entry.
  std::size_t longest_replacement() const;

 private:
  // The replacement of the shortest entry that `key` begins with; empty: there is none.
  std::optional<std::string_view> find(std::string_view key) const;

  std::vector<std::uint32_t> units_;
  std::string pool_;
};

}  // namespace kvasir::text
