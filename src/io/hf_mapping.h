// How a folder of one family, as the hub's models come, becomes what Kvasir's architectures read: GGUF's keys and
// tensor names. The tables themselves stand beside the architectures, in model/arch/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kvasir::io {

// How the stored values become those that are asked for. Experts that are stored in one tensor are matrices one after
// the other, and each is transformed by itself.
enum class HfTransform : std::uint8_t {
  kNone,
  kPlusOne,    // w + 1: norms whose weights are stored around 0
  kNegExp,     // -exp(w)
  kTranspose,  // floats are stored as [inputs, outputs]; quantised weights never are
  kSplitHeads,  // fused [q, k, v] of head 0, of head 1, ... (GPT-NeoX): all q rows, then all k, then all v
};

// Those of a matrix's rows, or of a bias's elements, that are taken; behind a kTranspose.
enum class HfPart : std::uint8_t { kAll, kFirstHalf, kSecondHalf, kEven, kOdd };

// A tensor's names without the parameter at their end (".weight", ".bias"), which both have. '*' stands for a
// number: the first is the layer's; a second one is the expert's, and its tensors are stacked into one. A folder's
// name may have several rows, when one stored tensor makes several. What precedes "layers", such as "model.", is
// left out.
struct HfName {
  std::string_view folder;
  std::string_view gguf;
  HfTransform transform = HfTransform::kNone;
  HfPart part = HfPart::kAll;
};

enum class HfValue : std::uint8_t {
  kAsIs,
  kReciprocal,   // 1 / x
  kInverseSqrt,  // 1 / sqrt(x)
  kPlusOne,      // x + 1, whole
  kPooling,      // "mean" or "cls" as GGUF's number
  kMustBe,       // not taken over: a value other than the fallback is refused
};

// A value of config.json that a family has beside the usual ones.
struct HfKey {
  std::string_view config;
  std::string_view gguf;                          // behind "<architecture>."; empty: known, and of no account
  std::optional<double> fallback = std::nullopt;  // the class's default; without one an absent key stays absent
  HfValue value = HfValue::kAsIs;
  std::optional<double> of_null = std::nullopt;  // what null means; without one the key stays absent
};

// Which layers have the window, where the file has neither layer_types nor a period.
enum class HfWindows : std::uint8_t {
  kByPeriod,     // all but each so-manieth, by the family's period; without one the architecture knows
  kAll,
  kUpper,        // from max_window_layers on
  kEvenLower,    // layers 0, 2, 4, .. below max_window_layers
  kWithoutRope,  // those that RoPE leaves alone
};

// Values that config.json may leave out because they are the defaults of the family's configuration class.
struct HfDefaults {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;  // 0: as many as query heads
  std::int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  std::int64_t max_position_embeddings = 0;
  double norm_eps = 1e-6;
  double rope_theta = 10000.0;
  double rope_local_theta = 0.0;   // of sliding-window layers; 0: as the others
  double rotary_factor = 1.0;      // of a head's elements, those that RoPE turns
  std::string_view rope_type = "default";
  std::int64_t sliding_window = 0;
  bool use_sliding_window = true;  // where config.json may say so
  std::int64_t sliding_window_pattern = 0;  // each so-manieth layer sees everything; 0: the family has no such period
  HfWindows windows = HfWindows::kByPeriod;
  std::int64_t max_window_layers = 28;
  std::int64_t no_rope_layer_interval = 0;  // each so-manieth layer goes without RoPE; 0: the family turns all
  std::int64_t global_head_dim = 0;  // of layers that see everything; 0: all heads are as wide, and layers alike
};

// The names of the Llama family's tensors, which most others follow.
inline constexpr HfName kLlamaNames[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"layers.*.input_layernorm", "blk.*.attn_norm"},
    {"layers.*.self_attn.q_proj", "blk.*.attn_q"},
    {"layers.*.self_attn.k_proj", "blk.*.attn_k"},
    {"layers.*.self_attn.v_proj", "blk.*.attn_v"},
    {"layers.*.self_attn.o_proj", "blk.*.attn_output"},
    {"layers.*.self_attn.q_norm", "blk.*.attn_q_norm"},
    {"layers.*.self_attn.k_norm", "blk.*.attn_k_norm"},
    {"layers.*.post_attention_layernorm", "blk.*.ffn_norm"},
    {"layers.*.mlp.gate_proj", "blk.*.ffn_gate"},
    {"layers.*.mlp.up_proj", "blk.*.ffn_up"},
    {"layers.*.mlp.down_proj", "blk.*.ffn_down"},
};

// A bias that modules of this name must have, where config.json says so.
struct HfBias {
  std::string_view folder;      // as in HfName
  std::string_view config = {};  // the key; empty: they have it always
  bool of_class = false;         // where the key is absent
};

inline constexpr HfBias kAttentionBiases[] = {
    {"layers.*.self_attn.q_proj", "attention_bias"},
    {"layers.*.self_attn.k_proj", "attention_bias"},
    {"layers.*.self_attn.v_proj", "attention_bias"},
    {"layers.*.self_attn.o_proj", "attention_bias"},
};
inline constexpr HfBias kLlamaBiases[] = {
    kAttentionBiases[0],
    kAttentionBiases[1],
    kAttentionBiases[2],
    kAttentionBiases[3],
    {"layers.*.mlp.gate_proj", "mlp_bias"},
    {"layers.*.mlp.up_proj", "mlp_bias"},
    {"layers.*.mlp.down_proj", "mlp_bias"},
};

struct HfMapping {
  std::array<std::string_view, 4> model_types;  // of config.json, or of its text_config; the rest are empty
  std::string_view architecture;                // general.architecture
  std::string_view activation = "silu";         // hidden_act; another one is refused
  std::string_view norm_eps_key = "rms_norm_eps";
  std::string_view norm_eps_gguf = "attention.layer_norm_rms_epsilon";
  std::string_view window_key = "sliding_window";
  std::string_view full_theta_key = "rope_theta";             // outside of RoPE's own object
  std::string_view local_theta_key = "rope_local_base_freq";  // likewise
  HfDefaults defaults;
  std::span<const HfKey> keys = {};
  std::span<const HfName> names = {};            // looked at first; where one matches, common_names are not
  std::span<const HfName> common_names = kLlamaNames;
  std::span<const HfBias> biases = {};
  std::span<const std::string_view> left_out = {};  // beginnings of tensor names, beside the usual ones
  // RoPE turns pairs (i, i + d/2) in the folder, and neighbours in GGUF files of the architecture.
  bool rope_by_halves = false;
  // Of folders whose config.json has use_bidirectional_attention; others of the same model_type are another family.
  bool is_bidirectional = false;
};

}  // namespace kvasir::io
