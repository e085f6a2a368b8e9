// Folders of Granite 3: factors on embeddings, residuals, attention and logits.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfKey kGraniteKeys[] = {
    {.config = "embedding_multiplier", .gguf = "embedding_scale", .fallback = 1.0},
    {.config = "residual_multiplier", .gguf = "residual_scale", .fallback = 1.0},
    {.config = "attention_multiplier", .gguf = "attention.scale", .fallback = 1.0},
    {.config = "logits_scaling", .gguf = "logit_scale", .fallback = 1.0},
};
constexpr io::HfKey kGraniteMoeKeys[] = {
    kGraniteKeys[0],
    kGraniteKeys[1],
    kGraniteKeys[2],
    kGraniteKeys[3],
    {.config = "num_local_experts", .gguf = "expert_count", .fallback = 8.0},
    {.config = "num_experts_per_tok", .gguf = "expert_used_count", .fallback = 2.0},
};
constexpr io::HfName kGraniteMoeNames[] = {
    {"layers.*.block_sparse_moe.router.layer", "blk.*.ffn_gate_inp"},
    {"layers.*.block_sparse_moe.input_linear", "blk.*.ffn_gate_exps", io::HfTransform::kNone,
     io::HfPart::kFirstHalf},
    {"layers.*.block_sparse_moe.input_linear", "blk.*.ffn_up_exps", io::HfTransform::kNone, io::HfPart::kSecondHalf},
    {"layers.*.block_sparse_moe.output_linear", "blk.*.ffn_down_exps"},
};
constexpr io::HfDefaults kGraniteDefaults = {.hidden_size = 4096,
                                             .intermediate_size = 11008,
                                             .num_hidden_layers = 32,
                                             .num_attention_heads = 32,
                                             .max_position_embeddings = 2048};

}  // namespace

const io::HfMapping kGraniteFolder = {.model_types = {"granite"},
                                      .architecture = "granite",
                                      .defaults = kGraniteDefaults,
                                      .keys = kGraniteKeys,
                                      .biases = io::kLlamaBiases,
                                      .rope_by_halves = true};
const io::HfMapping kGraniteMoeFolder = {.model_types = {"granitemoe"},
                                         .architecture = "granitemoe",
                                         .defaults = kGraniteDefaults,
                                         .keys = kGraniteMoeKeys,
                                         .names = kGraniteMoeNames,
                                         .biases = io::kAttentionBiases,
                                         .rope_by_halves = true};

}  // namespace kvasir::model
