#include "model/arch/dense.h"

#include <fmt/format.h>

#include <string>

#include "model/layers/residual.h"

namespace kvasir::model {

DenseDecoder::DenseDecoder(ModelConfig config, backend::Backend& backend, const DenseShape& shape)
    : Decoder(std::move(config), backend), shape_(shape) {
  ends_ = {.embedding_norm = shape.has_embedding_norm ? shape.norm : backend::NormKind::kNone,
           .output_norm = shape.has_stream_norms ? backend::NormKind::kNone : shape.norm,
           .classifier = shape.classifier};
}

Status DenseDecoder::load_layers(WeightLoader& loader) {
  if (shape_.has_post_norms && config_.residual_scale != 1.0f) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}.residual_scale: must be 1 for this architecture, is {}",
                                  config_.architecture, config_.residual_scale));
  }
  const backend::RopeStyle style = config_.rope_style.value_or(shape_.rope);
  for (std::int32_t i = 0; i < config_.num_layers; ++i) {
    KVASIR_TRY(Layer layer, load_layer(loader, i));
    layer.attention.rope = ropes_.add(config_.rope_of(i), style);
    layers_.push_back(std::move(layer));
  }
  return {};
}

Result<DenseDecoder::Layer> DenseDecoder::load_layer(WeightLoader& loader, std::int32_t index) {
  Layer layer;
  KVASIR_CHECKED(load_norms(loader, index, layer));
  KVASIR_TRY(layer.attention, load_attention(loader, config_, index, shape_.attention));
  if (config_.moe.has_experts(index)) {
    KVASIR_TRY(layer.moe, load_moe(loader, config_, index, shape_.moe));
  } else {
    KVASIR_TRY(layer.mlp, load_mlp(loader, config_, index, shape_.mlp));
  }
  return layer;
}

Status DenseDecoder::load_norms(WeightLoader& loader, std::int32_t index, Layer& layer) const {
  const auto load = [&](const char* name, Norm& norm) -> Status {
    const std::string tensor = fmt::format("blk.{}.{}", index, name);
    KVASIR_TRY(norm, load_norm(loader, tensor, shape_.norm, config_.hidden_size, config_.norm_eps));
    return {};
  };
  if (shape_.has_stream_norms) {
    KVASIR_CHECKED(load("attn_output_norm", layer.attention_stream_norm));
    KVASIR_CHECKED(load("layer_output_norm", layer.mlp_stream_norm));
  }
  if (shape_.has_pre_norms) {
    if (index > 0 || !shape_.lacks_first_norm) KVASIR_CHECKED(load("attn_norm", layer.attention_norm));
    if (shape_.mlp_norm == MlpNorm::kOfAttention) {
      layer.mlp_norm = layer.attention_norm;
    } else {
      const bool is_ffn = shape_.mlp_norm == MlpNorm::kFfn;
      KVASIR_CHECKED(load(is_ffn ? "ffn_norm" : "post_attention_norm", layer.mlp_norm));
    }
  }
  if (!shape_.has_post_norms) return {};
  KVASIR_CHECKED(load("post_attention_norm", layer.attention_post_norm));
  return load("post_ffw_norm", layer.mlp_post_norm);
}

bool DenseDecoder::run_layer(const LayerRun& run) {
  auto& [op, ws, config, index] = run;
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  const auto norm_stream = [&](const Norm& norm) {
    if (norm.kind != backend::NormKind::kNone) op.norm_in_place(ws.x, norm.op());
  };

  op.norm(ws.x, layer.attention_norm.op(), *ws.h);
  if (!run_attention(run, layer.attention)) return false;
  const backend::Activation& attended = attention_rows(run, layer.attention);
  if (!config.has_parallel_residual) {
    add_to_residual(run, attended, attention_output(layer.attention), layer.attention_post_norm);
  }
  norm_stream(layer.attention_stream_norm);

  op.norm(ws.x, layer.mlp_norm.op(), *ws.h);
  if (!layer.moe) run_mlp(run, layer.mlp);
  if (config.has_parallel_residual) add_to_residual(run, attended, attention_output(layer.attention));
  if (layer.moe) {
    run_moe(run, *layer.moe);
  } else {
    add_to_residual(run, mlp_rows(run, layer.mlp), mlp_output(layer.mlp), layer.mlp_post_norm);
  }
  norm_stream(layer.mlp_stream_norm);
  return true;
}

}  // namespace kvasir::model
