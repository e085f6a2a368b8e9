// Which tokens came behind the last few, over many texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::spec {

// A text that a model has written, behind what it was given to read.
struct GeneratedText {
  std::vector<TokenId> tokens;
  std::size_t num_prompt_tokens = 0;
};

// The contexts of 1 to `order` tokens before each generated token. About 16 bytes for each while they are counted.
class NgramCounts {
 public:
  NgramCounts(std::span<const GeneratedText> texts, std::int32_t order);

  struct Context {
    std::uint64_t hash = 0;    // NgramTable::hash_of()
    std::uint64_t shorter = 0;  // the same without its first token; 0: it has one
    std::int32_t order = 0;
    TokenId token = kNoToken;    // the most frequent, of equal ones the lowest
    std::int32_t num_times = 0;  // that it came
    std::int32_t num_all = 0;    // tokens that came behind the context
  };

  // By hash.
  std::span<const Context> contexts() const { return contexts_; }
  // Null: the context never came.
  const Context* find(std::uint64_t hash) const;

 private:
  std::vector<Context> contexts_;
};

}  // namespace kvasir::spec
