// How fast a device runs a model: prompts, one stream, many streams.
#pragma once

#include <string>

#include "kvasir/result.h"

namespace kvasir::testing {

struct DeviceSpeed {
  double prompt_tokens_per_s = 0.0;       // of one prompt of 2,048 tokens
  double stream_tokens_per_s = 0.0;       // one stream, 128 tokens behind 32
  double many_streams_tokens_per_s = 0.0;  // 64 streams, 128 tokens each behind 128
};

// The best of two runs each. Errors: those of Engine::load, and kMachine where the device fails.
Result<DeviceSpeed> measure_speed(const std::string& device, const std::string& model);

}  // namespace kvasir::testing
