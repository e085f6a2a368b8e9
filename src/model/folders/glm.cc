// Folders of GLM-4 and GLM-4.5, which turn half of each head.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr double kSigmoidGating = 2.0;  // expert_gating_func

constexpr io::HfName kGlm4Names[] = {
    {"layers.*.post_self_attn_layernorm", "blk.*.post_attention_norm"},
    {"layers.*.post_mlp_layernorm", "blk.*.post_ffw_norm"},
    {"layers.*.mlp.gate_up_proj", "blk.*.ffn_up"},
};
constexpr io::HfName kGlm4MoeNames[] = {
    {"layers.*.post_attention_layernorm", "blk.*.post_attention_norm"},
    {"layers.*.mlp.gate", "blk.*.ffn_gate_inp"},
    {"layers.*.mlp.gate.e_score_correction", "blk.*.exp_probs_b"},
    {"layers.*.mlp.experts.*.gate_proj", "blk.*.ffn_gate_exps"},
    {"layers.*.mlp.experts.*.up_proj", "blk.*.ffn_up_exps"},
    {"layers.*.mlp.experts.*.down_proj", "blk.*.ffn_down_exps"},
    {"layers.*.mlp.shared_experts.gate_proj", "blk.*.ffn_gate_shexp"},
    {"layers.*.mlp.shared_experts.up_proj", "blk.*.ffn_up_shexp"},
    {"layers.*.mlp.shared_experts.down_proj", "blk.*.ffn_down_shexp"},
};
constexpr io::HfKey kGlm4MoeKeys[] = {
    {.config = "n_routed_experts", .gguf = "expert_count", .fallback = 128.0},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 8.0},
    {.config = "moe_intermediate_size", .gguf = "expert_feed_forward_length", .fallback = 1408.0},
    {.config = "n_shared_experts", .gguf = "expert_shared_count", .fallback = 1.0},
    {.config = "first_k_dense_replace", .gguf = "leading_dense_block_count", .fallback = 1.0},
    {.config = "n_group", .gguf = "expert_group_count", .fallback = 1.0},
    {.config = "topk_group", .gguf = "expert_group_used_count", .fallback = 1.0},
    {.config = "norm_topk_prob", .gguf = "expert_weights_norm", .fallback = 1.0},
    {.config = "routed_scaling_factor", .gguf = "expert_weights_scale", .fallback = 1.0},
    {.config = "", .gguf = "expert_gating_func", .fallback = kSigmoidGating},
};
constexpr io::HfBias kGlm4Biases[] = {
    {"layers.*.self_attn.q_proj", "attention_bias", true},
    {"layers.*.self_attn.k_proj", "attention_bias", true},
    {"layers.*.self_attn.v_proj", "attention_bias", true},
};
constexpr io::HfBias kGlm4MoeBiases[] = {
    {"layers.*.self_attn.q_proj", "attention_bias"},
    {"layers.*.self_attn.k_proj", "attention_bias"},
    {"layers.*.self_attn.v_proj", "attention_bias"},
};

}  // namespace

const io::HfMapping kGlm4Folder = {.model_types = {"glm4"},
                                   .architecture = "glm4",
                                   .defaults = {.hidden_size = 4096,
                                                .intermediate_size = 13696,
                                                .num_hidden_layers = 40,
                                                .num_attention_heads = 32,
                                                .num_key_value_heads = 2,
                                                .head_dim = 128,
                                                .max_position_embeddings = 131072,
                                                .norm_eps = 1.5625e-7,
                                                .rotary_factor = 0.5},
                                   .names = kGlm4Names,
                                   .biases = kGlm4Biases};
const io::HfMapping kGlm4MoeFolder = {.model_types = {"glm4_moe"},
                                      .architecture = "glm4moe",
                                      .defaults = {.hidden_size = 4096,
                                                   .intermediate_size = 10944,
                                                   .num_hidden_layers = 46,
                                                   .num_attention_heads = 96,
                                                   .num_key_value_heads = 8,
                                                   .max_position_embeddings = 131072,
                                                   .norm_eps = 1e-5,
                                                   .rotary_factor = 0.5},
                                      .keys = kGlm4MoeKeys,
                                      .names = kGlm4MoeNames,
                                      .biases = kGlm4MoeBiases};

}  // namespace kvasir::model
