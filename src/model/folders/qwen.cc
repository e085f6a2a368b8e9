// Folders of Qwen 2 and 3, their mixtures of experts too.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kQwenMoeNames[] = {
    {"layers.*.mlp.gate", "blk.*.ffn_gate_inp"},
    {"layers.*.mlp.experts.*.gate_proj", "blk.*.ffn_gate_exps"},
    {"layers.*.mlp.experts.*.up_proj", "blk.*.ffn_up_exps"},
    {"layers.*.mlp.experts.*.down_proj", "blk.*.ffn_down_exps"},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_gate_exps", io::HfTransform::kNone, io::HfPart::kFirstHalf},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_up_exps", io::HfTransform::kNone, io::HfPart::kSecondHalf},
    {"layers.*.mlp.experts.down_proj", "blk.*.ffn_down_exps"},
    {"layers.*.mlp.shared_expert.gate_proj", "blk.*.ffn_gate_shexp"},
    {"layers.*.mlp.shared_expert.up_proj", "blk.*.ffn_up_shexp"},
    {"layers.*.mlp.shared_expert.down_proj", "blk.*.ffn_down_shexp"},
    {"layers.*.mlp.shared_expert_gate", "blk.*.ffn_gate_inp_shexp"},
};
// Every layer must have experts: GGUF has no word for a mixture.
constexpr io::HfKey kQwen2MoeKeys[] = {
    {.config = "num_experts", .gguf = "expert_count", .fallback = 60.0},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 4.0},
    {.config = "moe_intermediate_size", .gguf = "expert_feed_forward_length", .fallback = 1408.0},
    {.config = "shared_expert_intermediate_size", .gguf = "expert_shared_feed_forward_length", .fallback = 5632.0},
    {.config = "norm_topk_prob", .gguf = "expert_weights_norm", .fallback = 0.0},
    {.config = "decoder_sparse_step", .gguf = "", .fallback = 1.0, .value = io::HfValue::kMustBe},
};
constexpr io::HfKey kQwen3MoeKeys[] = {
    {.config = "num_local_experts", .gguf = "expert_count", .fallback = 128.0},
    {.config = "num_experts", .gguf = "expert_count"},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 8.0},
    {.config = "moe_intermediate_size", .gguf = "expert_feed_forward_length", .fallback = 768.0},
    {.config = "norm_topk_prob", .gguf = "expert_weights_norm", .fallback = 0.0},
    {.config = "decoder_sparse_step", .gguf = "", .fallback = 1.0, .value = io::HfValue::kMustBe},
};

}  // namespace

const io::HfMapping kQwen2Folder = {.model_types = {"qwen2", "qwen2_vl_text", "qwen2_5_vl_text"},
                                    .architecture = "qwen2",
                                    .defaults = {.hidden_size = 4096,
                                                 .intermediate_size = 22016,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 32,
                                                 .num_key_value_heads = 32,
                                                 .max_position_embeddings = 32768,
                                                 .sliding_window = 4096,
                                                 .use_sliding_window = false,
                                                 .windows = io::HfWindows::kUpper}};
const io::HfMapping kQwen3Folder = {.model_types = {"qwen3", "qwen3_vl_text"},
                                    .architecture = "qwen3",
                                    .defaults = {.hidden_size = 4096,
                                                 .intermediate_size = 22016,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 32,
                                                 .num_key_value_heads = 32,
                                                 .head_dim = 128,
                                                 .max_position_embeddings = 32768,
                                                 .sliding_window = 4096,
                                                 .use_sliding_window = false,
                                                 .windows = io::HfWindows::kUpper},
                                    .biases = io::kAttentionBiases};
const io::HfMapping kQwen2MoeFolder = {.model_types = {"qwen2_moe"},
                                       .architecture = "qwen2moe",
                                       .defaults = {.hidden_size = 2048,
                                                    .intermediate_size = 5632,
                                                    .num_hidden_layers = 24,
                                                    .num_attention_heads = 16,
                                                    .num_key_value_heads = 16,
                                                    .max_position_embeddings = 32768,
                                                    .sliding_window = 4096,
                                                    .use_sliding_window = false,
                                                    .windows = io::HfWindows::kEvenLower},
                                       .keys = kQwen2MoeKeys,
                                       .names = kQwenMoeNames};
const io::HfMapping kQwen3MoeFolder = {.model_types = {"qwen3_moe", "qwen3_vl_moe_text"},
                                       .architecture = "qwen3moe",
                                       .defaults = {.hidden_size = 2048,
                                                    .intermediate_size = 6144,
                                                    .num_hidden_layers = 24,
                                                    .num_attention_heads = 32,
                                                    .num_key_value_heads = 4,
                                                    .max_position_embeddings = 32768,
                                                    .sliding_window = 4096,
                                                    .use_sliding_window = false,
                                                    .windows = io::HfWindows::kAll},
                                       .keys = kQwen3MoeKeys,
                                       .names = kQwenMoeNames,
                                       .biases = io::kAttentionBiases};

}  // namespace kvasir::model
