// Folders of encoders: BERT and RoBERTa, Nomic BERT, ModernBERT, EmbeddingGemma.
#include "model/folders/folders.h"

namespace kvasir::model {
namespace {

constexpr io::HfName kBertNames[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"encoder.layer.*.attention.self.query", "blk.*.attn_q"},
    {"encoder.layer.*.attention.self.key", "blk.*.attn_k"},
    {"encoder.layer.*.attention.self.value", "blk.*.attn_v"},
    {"encoder.layer.*.attention.output.dense", "blk.*.attn_output"},
    {"encoder.layer.*.attention.output.LayerNorm", "blk.*.attn_output_norm"},
    {"encoder.layer.*.intermediate.dense", "blk.*.ffn_up"},
    {"encoder.layer.*.output.dense", "blk.*.ffn_down"},
    {"encoder.layer.*.output.LayerNorm", "blk.*.layer_output_norm"},
    {"pooler.dense", "pooler.dense"},
    {"classifier", "cls.output"},
    {"classifier.dense", "cls"},
    {"classifier.out_proj", "cls.output"},
};
// Heads that guess masked words and following sentences.
constexpr std::string_view kBertLeftOut[] = {"cls.predictions.", "cls.seq_relationship.", "lm_head."};
constexpr io::HfKey kNoDecoder = {.config = "is_decoder", .gguf = "", .fallback = 0.0, .value = io::HfValue::kMustBe};
constexpr io::HfKey kBertKeys[] = {kNoDecoder};
// Positions begin behind the padding token's.
constexpr io::HfKey kRobertaKeys[] = {
    kNoDecoder,
    {.config = "pad_token_id", .gguf = "first_position_row", .fallback = 1.0, .value = io::HfValue::kPlusOne},
};

constexpr io::HfName kNomicNames[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"emb_ln", "token_embd_norm"},
    {"encoder.layers.*.attn.Wqkv", "blk.*.attn_qkv"},
    {"encoder.layers.*.attn.out_proj", "blk.*.attn_output"},
    {"encoder.layers.*.norm1", "blk.*.attn_output_norm"},
    {"encoder.layers.*.mlp.fc11", "blk.*.ffn_up"},
    {"encoder.layers.*.mlp.fc12", "blk.*.ffn_gate"},
    {"encoder.layers.*.mlp.fc2", "blk.*.ffn_down"},
    {"encoder.layers.*.norm2", "blk.*.layer_output_norm"},
};
// Folders from before transformers had the class name their sizes otherwise: only those of the defaults are read.
constexpr io::HfKey kNomicKeys[] = {
    {.config = "n_embd", .gguf = "", .fallback = 768.0, .value = io::HfValue::kMustBe},
    {.config = "n_layer", .gguf = "", .fallback = 12.0, .value = io::HfValue::kMustBe},
    {.config = "n_head", .gguf = "", .fallback = 12.0, .value = io::HfValue::kMustBe},
    {.config = "n_inner", .gguf = "", .fallback = 3072.0, .value = io::HfValue::kMustBe},
    {.config = "prenorm", .gguf = "", .fallback = 0.0, .value = io::HfValue::kMustBe},
    {.config = "rotary_emb_fraction", .gguf = "", .fallback = 1.0, .value = io::HfValue::kMustBe},
    {.config = "rotary_emb_interleaved", .gguf = "", .fallback = 0.0, .value = io::HfValue::kMustBe},
};

constexpr io::HfName kModernBertNames[] = {
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"layers.*.attn_norm", "blk.*.attn_norm"},
    {"layers.*.attn.Wqkv", "blk.*.attn_qkv"},
    {"layers.*.attn.Wo", "blk.*.attn_output"},
    {"layers.*.mlp_norm", "blk.*.ffn_norm"},
    {"layers.*.mlp.Wi", "blk.*.ffn_up"},
    {"layers.*.mlp.Wo", "blk.*.ffn_down"},
    {"head.dense", "cls"},
    {"head.norm", "cls.norm"},
    {"classifier", "cls.output"},
};
constexpr io::HfKey kModernBertKeys[] = {
    {.config = "global_attn_every_n_layers", .gguf = "attention.sliding_window_pattern"},
    {.config = "classifier_pooling", .gguf = "classifier.pooling_type", .value = io::HfValue::kPooling},
};

constexpr io::HfDefaults kBertDefaults = {.hidden_size = 768,
                                          .intermediate_size = 3072,
                                          .num_hidden_layers = 12,
                                          .num_attention_heads = 12,
                                          .max_position_embeddings = 512,
                                          .norm_eps = 1e-12};
constexpr std::string_view kLayerNormKey = "layer_norm_eps", kLayerNormGguf = "attention.layer_norm_epsilon";

constexpr io::HfBias kBertBiases[] = {
    {"embeddings.LayerNorm"},
    {"encoder.layer.*.attention.self.query"},
    {"encoder.layer.*.attention.self.key"},
    {"encoder.layer.*.attention.self.value"},
    {"encoder.layer.*.attention.output.dense"},
    {"encoder.layer.*.attention.output.LayerNorm"},
    {"encoder.layer.*.intermediate.dense"},
    {"encoder.layer.*.output.dense"},
    {"encoder.layer.*.output.LayerNorm"},
};
constexpr io::HfBias kNomicBiases[] = {
    {"emb_ln"},
    {"encoder.layers.*.norm1"},
    {"encoder.layers.*.norm2"},
};
constexpr io::HfBias kModernBertBiases[] = {
    {"layers.*.attn.Wqkv", "attention_bias"},
    {"layers.*.attn.Wo", "attention_bias"},
    {"layers.*.mlp.Wi", "mlp_bias"},
    {"layers.*.mlp.Wo", "mlp_bias"},
    {"layers.*.attn_norm", "norm_bias"},
    {"layers.*.mlp_norm", "norm_bias"},
    {"embeddings.norm", "norm_bias"},
    {"final_norm", "norm_bias"},
};

}  // namespace

const io::HfMapping kBertFolder = {.model_types = {"bert"},
                                   .architecture = "bert",
                                   .activation = "gelu",
                                   .norm_eps_key = kLayerNormKey,
                                   .norm_eps_gguf = kLayerNormGguf,
                                   .defaults = kBertDefaults,
                                   .keys = kBertKeys,
                                   .common_names = kBertNames,
                                   .biases = kBertBiases,
                                   .left_out = kBertLeftOut};
const io::HfMapping kRobertaFolder = {.model_types = {"xlm-roberta", "roberta", "camembert"},
                                      .architecture = "bert",
                                      .activation = "gelu",
                                      .norm_eps_key = kLayerNormKey,
                                      .norm_eps_gguf = kLayerNormGguf,
                                      .defaults = kBertDefaults,
                                      .keys = kRobertaKeys,
                                      .common_names = kBertNames,
                                      .biases = kBertBiases,
                                      .left_out = kBertLeftOut};
const io::HfMapping kNomicBertFolder = {.model_types = {"nomic_bert"},
                                        .architecture = "nomic-bert",
                                        .norm_eps_key = kLayerNormKey,
                                        .norm_eps_gguf = kLayerNormGguf,
                                        .defaults = {.hidden_size = 768,
                                                     .intermediate_size = 3072,
                                                     .num_hidden_layers = 12,
                                                     .num_attention_heads = 12,
                                                     .max_position_embeddings = 2048,
                                                     .norm_eps = 1e-12,
                                                     .rope_theta = 1000.0},
                                        .keys = kNomicKeys,
                                        .common_names = kNomicNames,
                                        .biases = kNomicBiases};
const io::HfMapping kModernBertFolder = {.model_types = {"modernbert"},
                                         .architecture = "modern-bert",
                                         .activation = "gelu",
                                         .norm_eps_key = "norm_eps",
                                         .window_key = "local_attention",
                                         .full_theta_key = "global_rope_theta",
                                         .local_theta_key = "local_rope_theta",
                                         .defaults = {.hidden_size = 768,
                                                      .intermediate_size = 1152,
                                                      .num_hidden_layers = 22,
                                                      .num_attention_heads = 12,
                                                      .max_position_embeddings = 8192,
                                                      .norm_eps = 1e-5,
                                                      .rope_theta = 160000.0,
                                                      .rope_local_theta = 10000.0,
                                                      .sliding_window = 128},
                                         .keys = kModernBertKeys,
                                         .common_names = kModernBertNames,
                                         .biases = kModernBertBiases};

}  // namespace kvasir::model
