// The goldens of tests/goldens: tiny models of random weights, and what the reference implementation says of them.
// scripts/make_goldens.py makes the folders; tests/goldens/goldens.txt lists them with their state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::testing {

enum class GoldenForm : std::uint8_t { kGguf, kFolder };

// A line of the list.
struct GoldenState {
  std::string name;
  // The part that a form waits for before it can agree; empty: it is supported.
  std::string gguf_waits_for, folder_waits_for;
  // Tensors (without "blk.N.") and metadata keys (without the architecture) that change no result.
  std::vector<std::string> without_effect;

  const std::string& waits_for(GoldenForm form) const {
    return form == GoldenForm::kGguf ? gguf_waits_for : folder_waits_for;
  }
  bool has_effect(std::string_view tensor_or_key) const;
};

struct GoldenEmbedding {
  std::vector<TokenId> prompt;
  std::vector<std::uint8_t> token_types;  // of the prompt, or empty
  std::vector<float> vector;              // of length 1, or logits of a classifier
};

struct Golden {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;                // the answer to the prompt
  std::vector<std::int32_t> logit_positions;  // in prompt and answer, ascending
  std::int32_t vocab_size = 0;
  std::vector<float> logits;  // [logit_positions, vocab_size]
  // The experts of a mixture that the last layer uses for each token of prompt and answer.
  std::vector<std::vector<std::int32_t>> experts;
  std::vector<GoldenEmbedding> embeddings;  // of encoders, which have nothing of the above
};

// Errors: kBadFile naming the line.
Result<std::vector<GoldenState>> read_golden_states();

// The GGUF file or the folder of a golden.
std::string golden_model_path(const std::string& name, GoldenForm form);

// Errors: kBadFile naming the file.
Result<Golden> read_golden(const std::string& name);

}  // namespace kvasir::testing
