// The tokens that may follow a place of a grammar, as they are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/atlas.h"
#include "grammar/bitmask.h"
#include "grammar/compile/recorded_terminal.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// Thread safety: as of a value.
struct StoredMask {
  std::shared_ptr<const DenseMask> base;  // null: `tokens` are all
  std::vector<TokenId> removed;           // of the base
  std::vector<TokenId> tokens;            // not in the base, each once, in no order
  std::int32_t count = 0;
  TokenId only = kNoToken;                // when count is 1
  std::shared_ptr<const RecordedTerminals> recorded = nullptr;  // null: there are none

  void write_to(TokenMask& mask) const {
    if (base != nullptr) {
      mask.assign(base->mask.words());
    } else {
      mask.clear();
    }
    for (const TokenId token : removed) mask.reset(token);
    for (const TokenId token : tokens) mask.set(token);
  }
  bool test(TokenId token) const {
    if (base != nullptr && base->mask.test(token)) return std::ranges::find(removed, token) == removed.end();
    return std::ranges::find(tokens, token) != tokens.end();
  }
  // Without a base that a walk has too.
  std::size_t size_bytes() const {
    const bool owns_base = base != nullptr && base.use_count() == 1;
    const std::size_t num_recorded = recorded == nullptr ? 0 : recorded->terminals.size();
    return sizeof(*this) + (removed.capacity() + tokens.capacity()) * sizeof(TokenId) +
           num_recorded * sizeof(RecordedTerminal) + (owns_base ? base->size_bytes() : 0);
  }
};

}  // namespace kvasir::grammar
