// Makes an n-gram table of texts that a model has generated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/ngram_counts.h"
#include "spec/ngram_table.h"

namespace kvasir::spec {

// Chances are what every eighth text says of contexts that were counted in the others. Contexts of two tokens and more must
// have been followed by the same token twice, and be surer than their own ends are. Requires: order 1 to
// NgramTable::kMaxOrder.
NgramTable train_ngram_table(std::span<const GeneratedText> texts, std::int32_t order);

// Guesses each generated token of the texts from those before it, and those behind from guesses that were right.
struct NgramScore {
  static constexpr std::size_t kDepth = 4;

  std::int64_t num_tokens = 0;
  std::vector<double> acceptance;  // the share of tokens where the first guess was right, the first two, ..., of kDepth
};
NgramScore score_ngram_table(const NgramTable& table, std::span<const GeneratedText> texts);

}  // namespace kvasir::spec
