// Folders of OLMo 2 and 3, OLMoE and EXAONE 4: norms behind the sub-layers, or of whole rows of Q and K.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kPostNormNames[] = {
    {"layers.*.post_attention_layernorm", "blk.*.post_attention_norm"},
    {"layers.*.post_feedforward_layernorm", "blk.*.post_ffw_norm"},
};
constexpr io::HfName kOlmoeNames[] = {
    {"layers.*.mlp.gate", "blk.*.ffn_gate_inp"},
    {"layers.*.mlp.experts.*.gate_proj", "blk.*.ffn_gate_exps"},
    {"layers.*.mlp.experts.*.up_proj", "blk.*.ffn_up_exps"},
    {"layers.*.mlp.experts.*.down_proj", "blk.*.ffn_down_exps"},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_gate_exps", io::HfTransform::kNone, io::HfPart::kFirstHalf},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_up_exps", io::HfTransform::kNone, io::HfPart::kSecondHalf},
    {"layers.*.mlp.experts.down_proj", "blk.*.ffn_down_exps"},
};
constexpr io::HfKey kOlmoeKeys[] = {
    {.config = "num_experts", .gguf = "expert_count", .fallback = 64.0},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 8.0},
    {.config = "norm_topk_prob", .gguf = "expert_weights_norm", .fallback = 0.0},
};

}  // namespace

const io::HfMapping kOlmo2Folder = {.model_types = {"olmo2"},
                                    .architecture = "olmo2",
                                    .defaults = {.hidden_size = 4096,
                                                 .intermediate_size = 11008,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 32,
                                                 .max_position_embeddings = 2048,
                                                 .norm_eps = 1e-5},
                                    .names = kPostNormNames,
                                    .biases = io::kAttentionBiases};
const io::HfMapping kOlmo3Folder = {.model_types = {"olmo3"},
                                    .architecture = "olmo2",
                                    .defaults = {.hidden_size = 4096,
                                                 .intermediate_size = 11008,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 32,
                                                 .max_position_embeddings = 2048,
                                                 .norm_eps = 1e-5,
                                                 .rope_theta = 5e5,
                                                 .rope_local_theta = 5e5,
                                                 .sliding_window = 4096,
                                                 .sliding_window_pattern = 4},
                                    .names = kPostNormNames,
                                    .biases = io::kAttentionBiases};
const io::HfMapping kOlmoeFolder = {.model_types = {"olmoe"},
                                    .architecture = "olmoe",
                                    .defaults = {.hidden_size = 2048,
                                                 .intermediate_size = 2048,
                                                 .num_hidden_layers = 16,
                                                 .num_attention_heads = 16,
                                                 .max_position_embeddings = 4096,
                                                 .norm_eps = 1e-5},
                                    .keys = kOlmoeKeys,
                                    .names = kOlmoeNames,
                                    .biases = io::kAttentionBiases};
const io::HfMapping kExaone4Folder = {.model_types = {"exaone4"},
                                      .architecture = "exaone4",
                                      .defaults = {.hidden_size = 4096,
                                                   .intermediate_size = 16384,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 32,
                                                   .max_position_embeddings = 2048,
                                                   .norm_eps = 1e-5,
                                                   .sliding_window = 4096,
                                                   .sliding_window_pattern = 4},
                                      .names = kPostNormNames};

}  // namespace kvasir::model
