// Folders of Phi-3, 3.5, 4 and 4-mini, whose Q, K and V are one matrix, as gate and up are.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kPhi3Names[] = {
    {"layers.*.self_attn.qkv_proj", "blk.*.attn_qkv"},
    {"layers.*.mlp.gate_up_proj", "blk.*.ffn_up"},
};

}  // namespace

const io::HfMapping kPhi3Folder = {.model_types = {"phi3"},
                                   .architecture = "phi3",
                                   .defaults = {.hidden_size = 3072,
                                                .intermediate_size = 8192,
                                                .num_hidden_layers = 32,
                                                .num_attention_heads = 32,
                                                .max_position_embeddings = 4096,
                                                .norm_eps = 1e-5},
                                   .names = kPhi3Names};

}  // namespace kvasir::model
