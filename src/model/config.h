// The numbers that shape a decoder, read from a model file and range-checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::model {

enum class RopeScaling : std::uint8_t {
  kNone,
  kLinear,  // positions divided by a factor (Chen et al. 2023)
};

// Rotary embedding of one kind of layer (Su et al. 2021).
struct RopeConfig {
  double freq_base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;          // with kLinear
  std::int32_t rotary_dim = 0;  // leading elements of a head that turn; even, <= head_dim
  // Per-frequency divisors [rotary_dim / 2], e.g. Llama 3's piecewise scaling as GGUF stores it; empty: none.
  std::vector<float> freq_factors;
};

// Layers that share one kind of attention, and so one block table.
struct LayerGroup {
  std::int32_t window = 0;           // 0: every earlier token; else positions > own - window
  std::vector<std::int32_t> layers;  // ascending layer indices
};

// The part of the KV cache that a layer writes and reads.
struct KvPlace {
  std::int32_t group = 0;           // index of its layer group
  std::int32_t layer_in_group = 0;  // and of the layer inside it
};

struct ModelConfig {
  std::string architecture;
  std::string name;
  std::int32_t num_layers = 0;
  std::int32_t hidden_size = 0;
  std::int32_t intermediate_size = 0;
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t vocab_size = 0;  // rows of the embedding and logits of a row
  // Ids that have a token, <= vocab_size: some models pad their matrices to a round number of rows, and no
  // tokenizer knows what those stand for. vocab_size when the file has no tokenizer.
  std::int32_t num_tokens = 0;
  std::int32_t context_length_tokens = 0;
  float rms_norm_eps = 1e-5f;
  float attention_scale = 0.0f;  // multiplies q.k
  RopeConfig rope;
  std::optional<kernels::RopeStyle> rope_style;  // of the file; absent: the family's
  std::vector<LayerGroup> layer_groups;  // each layer in exactly one

  std::int32_t group_size() const { return num_heads / num_kv_heads; }  // query heads per KV head
  std::int32_t q_size() const { return num_heads * head_dim; }
  std::int32_t kv_size() const { return num_kv_heads * head_dim; }
  // Requires: 0 <= layer < num_layers.
  KvPlace kv_place(std::int32_t layer) const;
};

// Reads what all decoder architectures share, under the key prefix `<architecture>.`; one full-attention
// group. Errors: kBadFile naming the key, the limit and the value.
Result<ModelConfig> read_config(const io::WeightSource& source);

// For architectures whose layers all see every earlier token: kBadFile when the file asks for a window that
// its context outgrows (Mistral 7B v0.1), which would be computed wrongly without a sign.
Status refuse_sliding_window(const io::WeightSource& source, const ModelConfig& config);

}  // namespace kvasir::model
