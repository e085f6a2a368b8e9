// Answers of one model on two devices, and whether they are the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generate.h"

namespace kvasir::testing {

struct DeviceCase {
  std::string name, model;
  bool is_encoder = false;
  bool is_real = false;  // one prompt and eight tokens: an emulated device is slow
};

// Every golden that is supported, and tiny models of other weight formats.
std::vector<DeviceCase> device_cases();

// Those of them whose weights are blocks, which the fast mode multiplies in a way of its own.
std::vector<DeviceCase> fast_device_cases();

struct DeviceSettings {
  std::int64_t gpu_memory_bytes = 0;  // as EngineConfig has them
  std::int32_t gpu_layers = -1;
  bool fast = false;
};
// Small steps, so that prompts run in chunks; cells of F16. Errors: those of Engine::load.
Result<std::unique_ptr<Engine>> load_on(const std::string& device, const std::string& model,
                                        const DeviceSettings& settings = {});

// Some run in chunks, some together; half of them ask for log-probabilities.
std::vector<Answer> device_answers(Engine& engine, const DeviceCase& of);

// The first thing in which they differ, bits of floats included; empty where they do not.
std::string first_difference(const std::vector<Answer>& answers, const std::vector<Answer>& expected);

}  // namespace kvasir::testing
