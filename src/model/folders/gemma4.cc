// Folders of Gemma 4, inside those of models that see and hear too.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kGemma4Names[] = {
    {"embed_tokens_per_layer", "per_layer_token_embd"},
    {"per_layer_model_projection", "per_layer_model_proj"},
    {"per_layer_projection_norm", "per_layer_proj_norm"},
    {"layers.*.post_attention_layernorm", "blk.*.post_attention_norm"},
    {"layers.*.pre_feedforward_layernorm", "blk.*.ffn_norm"},
    {"layers.*.pre_feedforward_layernorm_2", "blk.*.pre_ffw_norm_2"},
    {"layers.*.post_feedforward_layernorm", "blk.*.post_ffw_norm"},
    {"layers.*.post_feedforward_layernorm_1", "blk.*.post_ffw_norm_1"},
    {"layers.*.post_feedforward_layernorm_2", "blk.*.post_ffw_norm_2"},
    {"layers.*.layer_scalar", "blk.*.layer_output_scale"},
    {"layers.*.per_layer_input_gate", "blk.*.inp_gate"},
    {"layers.*.per_layer_projection", "blk.*.proj"},
    {"layers.*.post_per_layer_input_norm", "blk.*.post_norm"},
    {"layers.*.router.proj", "blk.*.ffn_gate_inp"},
    {"layers.*.router.scale", "blk.*.ffn_gate_inp.scale"},
    {"layers.*.router.per_expert_scale", "blk.*.ffn_down_exps.scale"},
    {"layers.*.experts.gate_up_proj", "blk.*.ffn_gate_up_exps"},
    {"layers.*.experts.down_proj", "blk.*.ffn_down_exps"},
    {"layers.*.experts.*.gate_proj", "blk.*.ffn_gate_exps"},
    {"layers.*.experts.*.up_proj", "blk.*.ffn_up_exps"},
    {"layers.*.experts.*.down_proj", "blk.*.ffn_down_exps"},
};
// Without the key folders have no cap, and GGUF files have one.
constexpr io::HfKey kNoCap = {.config = "", .gguf = "final_logit_softcapping", .fallback = 0.0};
constexpr io::HfKey kCap = {.config = "final_logit_softcapping", .gguf = "final_logit_softcapping"};
constexpr io::HfKey kGemma4Keys[] = {
    {.config = "hidden_size_per_layer_input", .gguf = "embedding_length_per_layer_input", .fallback = 256.0},
    {.config = "num_experts", .gguf = "expert_count"},
    {.config = "top_k_experts", .gguf = "expert_used_count"},
    {.config = "moe_intermediate_size", .gguf = "expert_feed_forward_length"},
    kNoCap,
    kCap,
};
constexpr io::HfKey kGemma4UnifiedKeys[] = {
    {.config = "", .gguf = "embedding_length_per_layer_input", .fallback = 0.0}, kNoCap, kCap};
constexpr std::string_view kUnifiedLeftOut[] = {"vision_embedder."};
constexpr io::HfDefaults kGemma4Defaults = {.hidden_size = 2304,
                                            .intermediate_size = 9216,
                                            .num_hidden_layers = 30,
                                            .num_attention_heads = 8,
                                            .num_key_value_heads = 4,
                                            .head_dim = 256,
                                            .max_position_embeddings = 131072,
                                            .rope_theta = 1e6,
                                            .rope_local_theta = 1e4,
                                            .rotary_factor = 0.25,
                                            .rope_type = "proportional",
                                            .sliding_window = 512,
                                            .sliding_window_pattern = 6,
                                            .global_head_dim = 512};

constexpr io::HfDefaults unified_defaults() {
  io::HfDefaults defaults = kGemma4Defaults;
  defaults.max_position_embeddings = 262144;
  defaults.sliding_window = 1024;
  return defaults;
}

}  // namespace

const io::HfMapping kGemma4Folder = {.model_types = {"gemma4_text"},
                                     .architecture = "gemma4",
                                     .activation = "gelu_pytorch_tanh",
                                     .defaults = kGemma4Defaults,
                                     .keys = kGemma4Keys,
                                     .names = kGemma4Names,
                                     .biases = io::kAttentionBiases};
// The 12B model, which has neither experts nor embeddings per layer.
const io::HfMapping kGemma4UnifiedFolder = {.model_types = {"gemma4_unified_text"},
                                            .architecture = "gemma4",
                                            .activation = "gelu_pytorch_tanh",
                                            .defaults = unified_defaults(),
                                            .keys = kGemma4UnifiedKeys,
                                            .names = kGemma4Names,
                                            .biases = io::kAttentionBiases,
                                            .left_out = kUnifiedLeftOut};

}  // namespace kvasir::model
