#include "engine/gpu_layers.h"

#include <algorithm>
#include <vector>

#include "model/layers/per_layer_embedding.h"
#include "tensor/tensor_name.h"

namespace kvasir {

GpuLayers split_layers(const io::WeightSource& source, std::int32_t num_layers, std::int32_t wanted,
                       const std::function<bool(std::int64_t)>& fits) {
  std::vector<std::int64_t> layer_bytes(static_cast<std::size_t>(num_layers));
  GpuLayers layers{.num_layers = num_layers, .num_kept = num_layers};
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.name == model::kPerLayerTable) continue;  // rows are looked up in the file
    const std::int32_t layer = layer_of_tensor(tensor.name);
    layers.device_bytes += tensor.num_bytes();
    if (layer >= 0 && layer < num_layers) layer_bytes[static_cast<std::size_t>(layer)] += tensor.num_bytes();
  }
  const bool is_automatic = wanted == GpuLayers::kAsManyAsFit;
  const auto is_too_many = [&] { return is_automatic ? !fits(layers.device_bytes) : layers.num_kept > wanted; };
  while (layers.num_kept > 0 && is_too_many()) {
    const std::int64_t bytes = layer_bytes[static_cast<std::size_t>(--layers.num_kept)];
    layers.device_bytes -= bytes;
    layers.host_bytes += bytes;
  }
  return layers;
}

}  // namespace kvasir
