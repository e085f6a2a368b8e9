// Which layers of a model a device with memory of its own keeps, and which stay with the host.
#pragma once

#include <cstdint>
#include <functional>

#include "io/weight_source.h"

namespace kvasir {

// Layers from the first on are the device's; what is no layer's is so, too.
struct GpuLayers {
  static constexpr std::int32_t kAsManyAsFit = -1;  // EngineConfig::gpu_layers

  std::int32_t num_layers = 0;    // of the model
  std::int32_t num_kept = 0;      // by the device
  std::int64_t device_bytes = 0;  // of weights, as the file has them
  std::int64_t host_bytes = 0;

  bool are_all_kept() const { return num_kept == num_layers; }
};

// `wanted`: so many, at most all; or kAsManyAsFit by fits(device_bytes), which holds for all smaller numbers where it
// holds for one; none where it never does.
GpuLayers split_layers(const io::WeightSource& source, std::int32_t num_layers, std::int32_t wanted,
                       const std::function<bool(std::int64_t device_bytes)>& fits);

}  // namespace kvasir
