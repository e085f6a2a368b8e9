// Any text as a folder's config.json: an error of one line, or metadata that can be read back. What follows the first
// zero byte is a safetensors file, whose tensors are mapped with these numbers of layers and heads.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "io/hf_metadata.h"
#include "io/hf_quantization.h"
#include "io/hf_tensors.h"

namespace {

using namespace kvasir::io;

constexpr HfKey kKeys[] = {{.config = "scalar", .gguf = "scale", .fallback = 4.0, .value = HfValue::kInverseSqrt},
                           {.config = "softcap", .gguf = "final_logit_softcapping"},
                           {.config = "list", .gguf = "list"}};
constexpr HfName kNames[] = {{"norm", "output_norm", HfTransform::kPlusOne},
                             {"a.*.b.*.c", "blk.*.c"},
                             {"layers.*.f", "blk.*.f", HfTransform::kNone, HfPart::kOdd},
                             {"layers.*.t", "blk.*.t", HfTransform::kTranspose, HfPart::kFirstHalf},
                             {"layers.*.s", "blk.*.s", HfTransform::kSplitHeads}};
const HfMapping kMapping = {.model_types = {"t"},
                            .architecture = "t",
                            .defaults = {.hidden_size = 64,
                                         .intermediate_size = 96,
                                         .num_hidden_layers = 2,
                                         .num_attention_heads = 4,
                                         .max_position_embeddings = 128,
                                         .rope_local_theta = 1e4,
                                         .sliding_window = 16,
                                         .sliding_window_pattern = 2},
                            .keys = kKeys,
                            .names = kNames};

// The same with layers of two kinds.
HfMapping two_kinds() {
  HfMapping mapping = kMapping;
  mapping.defaults.rope_type = "proportional";
  mapping.defaults.global_head_dim = 32;
  return mapping;
}
const HfMapping kTwoKinds = two_kinds();

template <class T>
bool is_one_line(const kvasir::Result<T>& result) {
  return result || (!result.error().message.empty() && result.error().message.find('\n') == std::string::npos);
}

void map_rows(std::string_view file, const HfQuantization& quantization) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(file.data()), file.size());
  const auto stored = parse_safetensors(bytes, "fuzz");
  if (!stored) return;
  const auto mapped = map_tensors(*stored, kMapping, {.num_layers = 2, .num_heads = 2}, quantization);
  CHECK(is_one_line(mapped));
  if (!mapped) return;
  for (const MappedTensor& tensor : mapped->tensors) {
    CHECK(tensor.view.num_rows() == tensor.rows->num_rows() && tensor.view.row_length() == tensor.rows->row_length());
    std::vector<std::byte> row(static_cast<std::size_t>(tensor.rows->row_bytes()));
    tensor.rows->read(0, 1, row.data());
    tensor.rows->read(tensor.rows->num_rows() - 1, tensor.rows->num_rows(), row.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view text = all.substr(0, all.find('\0'));
  const auto config = HfConfig::parse(text, "fuzz.json");
  CHECK(is_one_line(config));
  if (!config) return 0;
  for (const HfMapping* mapping : {&kMapping, &kTwoKinds}) {
    const auto metadata = map_config(*config, *mapping);
    CHECK(is_one_line(metadata));
    if (metadata) CHECK(metadata->values.contains("t.block_count") && metadata->values.contains("t.rope.freq_base"));
  }
  const auto quantization = HfQuantization::read(*config);
  CHECK(is_one_line(quantization));
  if (quantization && text.size() < all.size()) map_rows(all.substr(text.size() + 1), *quantization);
  return 0;
}
