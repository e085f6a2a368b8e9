// Decoders of attention and a feed-forward network in each layer, one behind the other or side by side. A
// family is a DenseShape and what its files say otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "model/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"
#include "model/layers/moe.h"
#include "model/layers/norm.h"

namespace kvasir::model {

// Where the norm before the feed-forward network comes from.
enum class MlpNorm : std::uint8_t {
  kFfn,            // tensor ffn_norm
  kPostAttention,  // tensor post_attention_norm, as some writers call it
  kOfAttention,    // attention's own
};

// The parts in which the families differ.
struct DenseShape {
  backend::RopeStyle rope = backend::RopeStyle::kHalves;
  backend::NormKind norm = backend::NormKind::kRms;
  bool has_pre_norms = true;    // of what a sub-layer reads
  bool has_post_norms = false;  // of what it adds: tensors post_attention_norm and post_ffw_norm
  // Of the residual stream behind it, as in the first transformers: tensors attn_output_norm and
  // layer_output_norm. Then there is no norm behind the last layer.
  bool has_stream_norms = false;
  bool has_embedding_norm = false;
  bool lacks_first_norm = false;  // the first layer's attention reads the embedding as it is
  MlpNorm mlp_norm = MlpNorm::kFfn;
  AttentionParts attention = {};
  MlpParts mlp = {};
  MoeParts moe = {};  // of layers with experts, where the file has them
  HeadActivation classifier = HeadActivation::kTanh;
};

class DenseDecoder : public Decoder {
 public:
  DenseDecoder(ModelConfig config, backend::Backend& backend, const DenseShape& shape);

 private:
  struct Layer {
    Norm attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
    Norm attention_stream_norm, mlp_stream_norm;
    Attention attention;
    Mlp mlp;
    std::optional<Moe> moe;  // in place of `mlp`
  };

  Status load_layers(WeightLoader& loader) override;
  Result<Layer> load_layer(WeightLoader& loader, std::int32_t index);
  Status load_norms(WeightLoader& loader, std::int32_t index, Layer& layer) const;
  bool run_layer(const LayerRun& run) override;

  const DenseShape shape_;
  std::vector<Layer> layers_;
};

template <DenseShape kShape>
class DenseOf final : public DenseDecoder {
 public:
  DenseOf(ModelConfig config, backend::Backend& backend) : DenseDecoder(std::move(config), backend, kShape) {}
};

// Architecture::load of a family of that shape.
template <DenseShape kShape>
constexpr auto load_dense = load_decoder<DenseOf<kShape>>;

}  // namespace kvasir::model
