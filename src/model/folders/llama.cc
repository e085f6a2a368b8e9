// Folders of the Llama shape.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kMixtralNames[] = {
    {"layers.*.block_sparse_moe.gate", "blk.*.ffn_gate_inp"},
    {"layers.*.block_sparse_moe.experts.*.w1", "blk.*.ffn_gate_exps"},
    {"layers.*.block_sparse_moe.experts.*.w2", "blk.*.ffn_down_exps"},
    {"layers.*.block_sparse_moe.experts.*.w3", "blk.*.ffn_up_exps"},
    {"layers.*.mlp.gate", "blk.*.ffn_gate_inp"},  // as newer writers have it
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_gate_exps", io::HfTransform::kNone, io::HfPart::kFirstHalf},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_up_exps", io::HfTransform::kNone, io::HfPart::kSecondHalf},
    {"layers.*.mlp.experts.down_proj", "blk.*.ffn_down_exps"},
};
constexpr io::HfKey kMixtralKeys[] = {
    {.config = "num_local_experts", .gguf = "expert_count", .fallback = 8.0},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 2.0},
};
constexpr io::HfName kSeedOssNames[] = {
    {"layers.*.post_attention_layernorm", "blk.*.post_attention_norm"},
};
constexpr io::HfBias kSeedOssBiases[] = {
    {"layers.*.self_attn.q_proj", "attention_bias", true},
    {"layers.*.self_attn.k_proj", "attention_bias", true},
    {"layers.*.self_attn.v_proj", "attention_bias", true},
    {"layers.*.self_attn.o_proj", "attention_out_bias"},
    {"layers.*.mlp.gate_proj", "mlp_bias"},
    {"layers.*.mlp.up_proj", "mlp_bias"},
    {"layers.*.mlp.down_proj", "mlp_bias"},
};

}  // namespace

const io::HfMapping kLlamaFolder = {.model_types = {"llama"},
                                    .architecture = "llama",
                                    .defaults = {.hidden_size = 4096,
                                                 .intermediate_size = 11008,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 32,
                                                 .max_position_embeddings = 2048},
                                    .biases = io::kLlamaBiases,
                                    .rope_by_halves = true};
const io::HfMapping kMistralFolder = {.model_types = {"mistral"},
                                      .architecture = "llama",
                                      .defaults = {.hidden_size = 4096,
                                                   .intermediate_size = 14336,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 8,
                                                   .max_position_embeddings = 131072,
                                                   .sliding_window = 4096},
                                      .rope_by_halves = true};
const io::HfMapping kMinistral3Folder = {.model_types = {"ministral3"},
                                         .architecture = "mistral3",
                                         .defaults = {.hidden_size = 4096,
                                                      .intermediate_size = 14336,
                                                      .num_hidden_layers = 34,
                                                      .num_attention_heads = 32,
                                                      .num_key_value_heads = 8,
                                                      .head_dim = 128,
                                                      .max_position_embeddings = 262144,
                                                      .norm_eps = 1e-5},
                                         .rope_by_halves = true};
const io::HfMapping kMixtralFolder = {.model_types = {"mixtral"},
                                      .architecture = "llama",
                                      .defaults = {.hidden_size = 4096,
                                                   .intermediate_size = 14336,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 8,
                                                   .max_position_embeddings = 131072,
                                                   .norm_eps = 1e-5,
                                                   .rope_theta = 1e6},
                                      .keys = kMixtralKeys,
                                      .names = kMixtralNames,
                                      .rope_by_halves = true};
const io::HfMapping kSmolLm3Folder = {.model_types = {"smollm3"},
                                      .architecture = "smollm3",
                                      .defaults = {.hidden_size = 2048,
                                                   .intermediate_size = 11008,
                                                   .num_hidden_layers = 36,
                                                   .num_attention_heads = 16,
                                                   .num_key_value_heads = 4,
                                                   .max_position_embeddings = 32768,
                                                   .rope_theta = 2e6,
                                                   .use_sliding_window = false,
                                                   .windows = io::HfWindows::kWithoutRope,
                                                   .no_rope_layer_interval = 4},
                                      .biases = io::kLlamaBiases,
                                      .rope_by_halves = true};
const io::HfMapping kSeedOssFolder = {.model_types = {"seed_oss"},
                                      .architecture = "seed_oss",
                                      .defaults = {.hidden_size = 4096,
                                                   .intermediate_size = 27648,
                                                   .num_hidden_layers = 64,
                                                   .num_attention_heads = 80,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 128,
                                                   .max_position_embeddings = 524288},
                                      .names = kSeedOssNames,
                                      .biases = kSeedOssBiases};

}  // namespace kvasir::model
