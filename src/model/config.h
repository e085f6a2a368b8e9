// The numbers that shape a decoder, read from a model file and range-checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "io/weight_source.h"
#include "kvasir/pooling.h"
#include "kvasir/result.h"
#include "model/moe_config.h"

namespace kvasir::model {

enum class RopeScaling : std::uint8_t {
  kNone,
  kLinear,    // positions divided by a factor (Chen et al. 2023)
  kYarn,      // slow frequencies divided by it, fast ones not (Peng et al. 2023)
  kLongRope,  // a divisor per frequency, by the context that is to be used (Ding et al. 2024)
};

// Rotary embedding of one kind of layer (Su et al. 2021).
struct RopeConfig {
  double freq_base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                       // with kLinear and kYarn
  std::int32_t original_context_tokens = 0;  // with kYarn and kLongRope: of the training before the scaling
  double yarn_beta_fast = 32.0;              // turns within it from which on a frequency is fast
  double yarn_beta_slow = 1.0;               // and up to which it is slow
  bool yarn_rounds = true;                   // the borders between them to whole frequencies
  double attention_factor = 1.0;             // on cos and sin
  std::int32_t rotary_dim = 0;     // leading elements of a head that turn; even, <= head_dim; 0: none
  bool takes_freq_factors = true;  // of the file, where it has them
  // Per-frequency divisors [rotary_dim / 2], e.g. Llama 3's piecewise scaling as GGUF stores it; empty: none.
  std::vector<float> freq_factors;

  bool operator==(const RopeConfig&) const = default;
};

// Layers that share one kind of attention, and so one block table.
struct LayerGroup {
  // 0: every earlier token; else positions > own - window. Of an encoder: every token; else positions within
  // window - 1 to both sides.
  std::int32_t window = 0;
  std::int32_t num_kv_heads = 0;     // 0: the model's
  std::int32_t head_dim = 0;         // likewise
  std::vector<std::int32_t> layers;  // ascending indices of those that store keys and values
};

// The part of the KV cache that a layer reads, and that it or an earlier layer writes.
struct KvPlace {
  std::int32_t group = 0;           // index of its layer group
  std::int32_t layer_in_group = 0;  // and of the layer inside it
};

struct ModelConfig {
  std::string architecture;
  std::string name;
  std::int32_t num_layers = 0;
  std::int32_t num_predicting_layers = 0;  // behind these in the file: of further tokens, and left out
  std::int32_t hidden_size = 0;
  // Of the feed-forward layers, the greatest where they differ; 0: all of them are of experts.
  std::int32_t intermediate_size = 0;
  std::vector<std::int32_t> layer_intermediate_sizes;  // by layer; empty: all are intermediate_size
  std::int32_t num_heads = 0;
  std::int32_t num_kv_heads = 0;  // unless the layer's group says otherwise; the greatest where they differ
  std::int32_t head_dim = 0;      // likewise
  std::vector<std::int32_t> layer_kv_heads;  // by layer, as the file has them; empty: all are num_kv_heads
  std::int32_t vocab_size = 0;  // rows of the embedding and logits of a row
  // Ids that have a token, <= vocab_size: some models pad their matrices to a round number of rows, and no
  // tokenizer knows what those stand for. vocab_size when the file has no tokenizer.
  std::int32_t num_tokens = 0;
  std::int32_t context_length_tokens = 0;
  float norm_eps = 1e-5f;
  float attention_scale = 0.0f;  // multiplies q.k
  float attention_softcap = 0.0f;
  // Scales queries by position, where not 0 (backend::RopeAndStoreOp).
  float temperature_scale = 0.0f;
  std::int32_t temperature_length_tokens = 1;
  float embedding_scale = 1.0f;
  float residual_scale = 1.0f;  // of what a sub-layer adds to the residual stream
  float logit_scale = 1.0f;
  float final_softcap = 0.0f;                    // of logits, after the scale
  bool has_parallel_residual = false;            // attention and MLP read the same rows
  // Each token sees those behind it too, so a text runs in one step. No head: hidden states are the result.
  bool is_encoder = false;
  bool has_learned_positions = false;      // added to the embedding; then nothing turns
  std::int32_t first_position_row = 0;     // of the table of learned positions: the first token's
  Pooling pooling = Pooling::kMean;        // as the file says
  bool says_pooling = false;               // it does
  Pooling rank_pooling = Pooling::kFirst;  // what a classifier reads: kFirst, kMean or kLast
  RopeConfig rope;                               // of every layer, unless layer_ropes names others
  std::vector<RopeConfig> layer_ropes;           // by layer; empty: all as `rope`
  std::optional<backend::RopeStyle> rope_style;  // of the file; absent: the family's
  std::vector<LayerGroup> layer_groups;          // each layer that stores keys and values in exactly one
  // By layer: the one whose keys and values it attends to, itself or an earlier one of its kind; empty: itself.
  std::vector<std::int32_t> kv_layers;
  std::int32_t per_layer_size = 0;  // of each layer's own embedding of a token; 0: there is none
  MoeConfig moe;

  bool has_dense_layers() const {
    return !moe.has_experts() || moe.num_leading_dense_layers > 0 || moe.is_beside_dense;
  }
  std::int32_t intermediate_size_of(std::int32_t layer) const {
    return layer_intermediate_sizes.empty() ? intermediate_size
                                            : layer_intermediate_sizes[static_cast<std::size_t>(layer)];
  }
  std::int32_t num_kv_heads_of(const LayerGroup& group) const {
    return group.num_kv_heads > 0 ? group.num_kv_heads : num_kv_heads;
  }
  std::int32_t head_dim_of(const LayerGroup& group) const {
    return group.head_dim > 0 ? group.head_dim : head_dim;
  }
  // Layers of the group whose KV is kept at once. No later step reads an encoder's, so its layers take turns.
  std::int32_t num_kv_layers_of(const LayerGroup& group) const {
    return is_encoder ? 1 : static_cast<std::int32_t>(group.layers.size());
  }
  // Numbers of a row of queries, or of keys, in layers of a group; and the most of any group.
  std::int32_t q_size_of(const LayerGroup& group) const { return num_heads * head_dim_of(group); }
  std::int32_t kv_size_of(const LayerGroup& group) const { return num_kv_heads_of(group) * head_dim_of(group); }
  std::int32_t max_q_size() const;
  std::int32_t max_kv_size() const;
  // Whether layers may run one after the other over whole prompts, with one layer's memory: the KV of every layer
  // has the same size, and nothing but the residual stream goes from one to the next.
  bool can_run_layer_by_layer() const;
  // Below, requires: 0 <= layer < num_layers.
  bool stores_kv(std::int32_t layer) const { return kv_layer(layer) == layer; }
  std::int32_t kv_layer(std::int32_t layer) const {
    return kv_layers.empty() ? layer : kv_layers[static_cast<std::size_t>(layer)];
  }
  // The last layer that stores keys and values.
  std::int32_t last_kv_layer() const;
  KvPlace kv_place(std::int32_t layer) const;
  const LayerGroup& group_of(std::int32_t layer) const {
    return layer_groups[static_cast<std::size_t>(kv_place(layer).group)];
  }
  bool has_window(std::int32_t layer) const { return group_of(layer).window > 0; }
  bool has_windows() const {
    return std::ranges::any_of(layer_groups, [](const LayerGroup& group) { return group.window > 0; });
  }
  const RopeConfig& rope_of(std::int32_t layer) const {
    return layer_ropes.empty() ? rope : layer_ropes[static_cast<std::size_t>(layer)];
  }
  // Gives each layer the kind that rope_of(layer) returns. After the layers are in their groups.
  template <class RopeOf>
  void set_layer_ropes(const RopeOf& rope_of) {
    layer_ropes.clear();
    for (std::int32_t layer = 0; layer < num_layers; ++layer) layer_ropes.push_back(rope_of(layer));
  }
};

// Reads what all decoder architectures share, under the key prefix `<architecture>.`; one full-attention
// group. Errors: kBadFile naming the key, the limit and the value.
Result<ModelConfig> read_config(const io::WeightSource& source);

// Which layers of a family see a window only, where its files say so.
struct WindowPattern {
  static constexpr std::int64_t kEveryLayer = 0;
  static constexpr std::int64_t kUnknown = -1;  // the file must have the pattern
  std::int64_t period = kEveryLayer;            // the last layer of each so many sees every token
  std::int64_t default_window = 0;              // in tokens, where the file does not say
  bool first_sees_all = false;                  // of each so many the first does instead
};

// Splits the layers into those that see every token and those that see a window, each with the KV heads that the
// file gives them: keys
// attention.sliding_window (absent, 0 or -1: there is none) and attention.sliding_window_pattern, a flag for each
// layer or a period. Where every layer sees the window or the pattern is unknown, one that is as long as the context
// is none. An encoder's file has the width of both sides together. Errors: kBadFile.
Status split_windows(const io::WeightSource& source, const WindowPattern& pattern, ModelConfig& config);

// Lets the last layers attend to what the last of the others with the same kind of attention has stored: key
// attention.shared_kv_layers, absent or 0: none does. After split_windows(). Errors: kBadFile.
Status share_kv(const io::Metadata& metadata, ModelConfig& config);

// Whether every layer has as many KV heads as its group. After the groups are made. Error (kBadFile): the layer.
Status check_kv_heads(const ModelConfig& config);

}  // namespace kvasir::model
