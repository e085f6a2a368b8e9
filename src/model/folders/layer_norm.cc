// Folders of families with LayerNorm: Command R7B, StarCoder2, GPT-NeoX.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfKey kCohere2Keys[] = {
    {.config = "logit_scale", .gguf = "logit_scale", .fallback = 0.0625},
};
constexpr io::HfName kStarCoder2Names[] = {
    {"layers.*.mlp.c_fc", "blk.*.ffn_up"},
    {"layers.*.mlp.c_proj", "blk.*.ffn_down"},
};
constexpr io::HfKey kGptNeoXKeys[] = {
    {.config = "use_parallel_residual", .gguf = "use_parallel_residual", .fallback = 1.0},
};
constexpr io::HfName kGptNeoXNames[] = {
    {"embed_in", "token_embd"},
    {"embed_out", "output"},
    {"final_layer_norm", "output_norm"},
    {"layers.*.post_attention_layernorm", "blk.*.ffn_norm"},
    {"layers.*.attention.query_key_value", "blk.*.attn_qkv", io::HfTransform::kSplitHeads},
    {"layers.*.attention.dense", "blk.*.attn_output"},
    {"layers.*.mlp.dense_h_to_4h", "blk.*.ffn_up"},
    {"layers.*.mlp.dense_4h_to_h", "blk.*.ffn_down"},
};
constexpr io::HfBias kStarCoder2Biases[] = {
    {"layers.*.self_attn.q_proj", "use_bias", true},
    {"layers.*.self_attn.k_proj", "use_bias", true},
    {"layers.*.self_attn.v_proj", "use_bias", true},
    {"layers.*.self_attn.o_proj", "use_bias", true},
    {"layers.*.mlp.c_fc", "use_bias", true},
    {"layers.*.mlp.c_proj", "use_bias", true},
    {"layers.*.input_layernorm"},
    {"layers.*.post_attention_layernorm"},
    {"norm"},
};
constexpr io::HfBias kGptNeoXBiases[] = {
    {"layers.*.attention.query_key_value", "attention_bias", true},
    {"layers.*.attention.dense", "attention_bias", true},
    {"layers.*.mlp.dense_h_to_4h"},
    {"layers.*.mlp.dense_4h_to_h"},
    {"layers.*.input_layernorm"},
    {"layers.*.post_attention_layernorm"},
    {"final_layer_norm"},
};

}  // namespace

const io::HfMapping kCohere2Folder = {.model_types = {"cohere2"},
                                      .architecture = "cohere2",
                                      .norm_eps_key = "layer_norm_eps",
                                      .norm_eps_gguf = "attention.layer_norm_epsilon",
                                      .defaults = {.hidden_size = 8192,
                                                   .intermediate_size = 22528,
                                                   .num_hidden_layers = 40,
                                                   .num_attention_heads = 64,
                                                   .max_position_embeddings = 8192,
                                                   .norm_eps = 1e-5,
                                                   .sliding_window = 4096,
                                                   .sliding_window_pattern = 4},
                                      .keys = kCohere2Keys,
                                      .biases = io::kAttentionBiases};
const io::HfMapping kStarCoder2Folder = {.model_types = {"starcoder2"},
                                         .architecture = "starcoder2",
                                         .activation = "gelu_pytorch_tanh",
                                         .norm_eps_key = "norm_epsilon",
                                         .norm_eps_gguf = "attention.layer_norm_epsilon",
                                         .defaults = {.hidden_size = 3072,
                                                      .intermediate_size = 12288,
                                                      .num_hidden_layers = 30,
                                                      .num_attention_heads = 24,
                                                      .num_key_value_heads = 2,
                                                      .max_position_embeddings = 4096,
                                                      .norm_eps = 1e-5},
                                         .names = kStarCoder2Names,
                                         .biases = kStarCoder2Biases};
const io::HfMapping kGptNeoXFolder = {.model_types = {"gpt_neox"},
                                      .architecture = "gptneox",
                                      .activation = "gelu",
                                      .norm_eps_key = "layer_norm_eps",
                                      .norm_eps_gguf = "attention.layer_norm_epsilon",
                                      .defaults = {.hidden_size = 6144,
                                                   .intermediate_size = 24576,
                                                   .num_hidden_layers = 44,
                                                   .num_attention_heads = 64,
                                                   .max_position_embeddings = 2048,
                                                   .norm_eps = 1e-5,
                                                   .rotary_factor = 0.25},
                                      .keys = kGptNeoXKeys,
                                      .names = kGptNeoXNames,
                                      .biases = kGptNeoXBiases};

}  // namespace kvasir::model
