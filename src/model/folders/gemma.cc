// Folders of Gemma 2 and 3, whose norms are stored around 0.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kGemmaNames[] = {
    {"norm", "output_norm", io::HfTransform::kPlusOne},
    {"layers.*.input_layernorm", "blk.*.attn_norm", io::HfTransform::kPlusOne},
    {"layers.*.post_attention_layernorm", "blk.*.post_attention_norm", io::HfTransform::kPlusOne},
    {"layers.*.pre_feedforward_layernorm", "blk.*.ffn_norm", io::HfTransform::kPlusOne},
    {"layers.*.post_feedforward_layernorm", "blk.*.post_ffw_norm", io::HfTransform::kPlusOne},
    {"layers.*.self_attn.q_norm", "blk.*.attn_q_norm", io::HfTransform::kPlusOne},
    {"layers.*.self_attn.k_norm", "blk.*.attn_k_norm", io::HfTransform::kPlusOne},
};
constexpr io::HfKey kQueryScale = {.config = "query_pre_attn_scalar",
                                   .gguf = "attention.scale",
                                   .fallback = 256.0,
                                   .value = io::HfValue::kInverseSqrt};
constexpr io::HfKey kGemma2Keys[] = {
    kQueryScale,
    {.config = "final_logit_softcapping", .gguf = "final_logit_softcapping", .fallback = 30.0, .of_null = 0.0},
    {.config = "attn_logit_softcapping", .gguf = "attn_logit_softcapping", .fallback = 50.0, .of_null = 0.0},
};
constexpr io::HfDefaults kGemma3Defaults = {.hidden_size = 2304,
                                            .intermediate_size = 9216,
                                            .num_hidden_layers = 26,
                                            .num_attention_heads = 8,
                                            .num_key_value_heads = 4,
                                            .head_dim = 256,
                                            .max_position_embeddings = 131072,
                                            .rope_theta = 1e6,
                                            .rope_local_theta = 1e4,
                                            .sliding_window = 4096,
                                            .sliding_window_pattern = 6};
constexpr io::HfKey kGemma3Keys[] = {
    kQueryScale,
    {.config = "final_logit_softcapping", .gguf = "final_logit_softcapping"},
    {.config = "attn_logit_softcapping", .gguf = "attn_logit_softcapping"},
};

}  // namespace

const io::HfMapping kGemma2Folder = {.model_types = {"gemma2"},
                                     .architecture = "gemma2",
                                     .activation = "gelu_pytorch_tanh",
                                     .defaults = {.hidden_size = 2304,
                                                  .intermediate_size = 9216,
                                                  .num_hidden_layers = 26,
                                                  .num_attention_heads = 8,
                                                  .num_key_value_heads = 4,
                                                  .head_dim = 256,
                                                  .max_position_embeddings = 8192,
                                                  .sliding_window = 4096,
                                                  .sliding_window_pattern = 2},
                                     .keys = kGemma2Keys,
                                     .names = kGemmaNames,
                                     .biases = io::kAttentionBiases};
const io::HfMapping kGemma3Folder = {.model_types = {"gemma3_text"},
                                     .architecture = "gemma3",
                                     .activation = "gelu_pytorch_tanh",
                                     .defaults = kGemma3Defaults,
                                     .keys = kGemma3Keys,
                                     .names = kGemmaNames,
                                     .biases = io::kAttentionBiases};
const io::HfMapping kGemmaEmbeddingFolder = {.model_types = {"gemma3_text"},
                                             .architecture = "gemma-embedding",
                                             .activation = "gelu_pytorch_tanh",
                                             .defaults = kGemma3Defaults,
                                             .keys = kGemma3Keys,
                                             .names = kGemmaNames,
                                             .biases = io::kAttentionBiases,
                                             .is_bidirectional = true};

}  // namespace kvasir::model
