// Folders of gpt-oss: experts in MXFP4 blocks, or in BF16 with inputs first; rows of gate and up alternate.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kGptOssNames[] = {
    {"layers.*.post_attention_layernorm", "blk.*.post_attention_norm"},
    {"layers.*.self_attn.sinks", "blk.*.attn_sinks"},
    {"layers.*.mlp.router", "blk.*.ffn_gate_inp"},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_gate_exps", io::HfTransform::kTranspose, io::HfPart::kEven},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_up_exps", io::HfTransform::kTranspose, io::HfPart::kOdd},
    {"layers.*.mlp.experts.down_proj", "blk.*.ffn_down_exps", io::HfTransform::kTranspose},
};
constexpr io::HfKey kGptOssKeys[] = {
    {.config = "num_local_experts", .gguf = "expert_count", .fallback = 128.0},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 4.0},
    {.config = "intermediate_size", .gguf = "expert_feed_forward_length", .fallback = 2880.0},
    {.config = "swiglu_limit", .gguf = "", .fallback = 7.0, .value = io::HfValue::kMustBe},
    {.config = "swiglu_alpha", .gguf = "", .fallback = 1.702, .value = io::HfValue::kMustBe},
};
constexpr io::HfBias kGptOssBiases[] = {
    {"layers.*.self_attn.q_proj", "attention_bias", true},
    {"layers.*.self_attn.k_proj", "attention_bias", true},
    {"layers.*.self_attn.v_proj", "attention_bias", true},
    {"layers.*.self_attn.o_proj", "attention_bias", true},
};

}  // namespace

const io::HfMapping kGptOssFolder = {.model_types = {"gpt_oss"},
                                     .architecture = "gpt-oss",
                                     .defaults = {.hidden_size = 2880,
                                                  .intermediate_size = 2880,
                                                  .num_hidden_layers = 36,
                                                  .num_attention_heads = 64,
                                                  .num_key_value_heads = 8,
                                                  .head_dim = 64,
                                                  .max_position_embeddings = 131072,
                                                  .norm_eps = 1e-5,
                                                  .rope_theta = 150000.0,
                                                  .sliding_window = 128,
                                                  .sliding_window_pattern = 2},
                                     .keys = kGptOssKeys,
                                     .names = kGptOssNames,
                                     .biases = kGptOssBiases};

}  // namespace kvasir::model
