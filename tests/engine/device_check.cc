// Runs every golden on a device and on the CPU, and models of blocks in the fast mode too. Prints a row for each:
// scripts/gpu_check.sh.
//   kvasir_device_check DEVICE [MODEL...]     MODEL: a real model's file besides, eight tokens of it
//   kvasir_device_check DEVICE --shapes FOLDER [SHAPE...]   instead: models of well-known shapes with random weights, eight
//       tokens each and then their speed. Their files come and go in the folder: SHAPE 30b-a3b takes 17 GB, 8b 5 GB
// Exit code: 0, 1 for an answer that differs, 3 for a device that is not there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/registry.h"
#include "device_answers.h"
#include "device_speed.h"
#include "shape_model.h"

namespace kvasir::testing {
namespace {

// The row of a case; true where the device says what the CPU says.
bool check(const std::string& device, const DeviceCase& of, bool fast) {
  const auto begin = std::chrono::steady_clock::now();
  std::string difference;
  const auto cpu = load_on("cpu", of.model, {.fast = fast});
  const auto other = load_on(device, of.model, {.fast = fast});
  if (!cpu || !other) {
    difference = "not loaded: " + (cpu ? other.error().message : cpu.error().message);
  } else {
    difference = first_difference(device_answers(**other, of), device_answers(**cpu, of));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("model\t{}{}\t{}\t{:.2f} s\n", of.name, fast ? " fast" : "", difference.empty() ? "equal" : difference,
             seconds.count());
  return difference.empty();
}

bool check_shape(const std::string& device, const ModelShape& shape, const std::string& folder) {
  const std::string path = folder + "/" + shape.name + ".gguf";
  bool is_equal = false;
  if (const Status written = write_shape_model(shape, path, 1); !written) {
    fmt::print("model\t{}\tnot written: {}\t\n", shape.name, written.error().message);
  } else {
    is_equal = check(device, {.name = shape.name, .model = path, .is_real = true}, false);
    const auto speed = measure_speed(device, path);
    const auto row = [&](const char* what, double tokens_per_s) {
      fmt::print("speed\t{}\t{}\t{:.1f} tokens/s\n", shape.name, what, tokens_per_s);
    };
    if (speed) {
      row("prompt 2048", speed->prompt_tokens_per_s);
      row("1 stream", speed->stream_tokens_per_s);
      row("64 streams", speed->many_streams_tokens_per_s);
    } else {
      fmt::print("speed\t{}\t{}\t\n", shape.name, speed.error().message);
    }
  }
  std::fflush(stdout);
  std::remove(path.c_str());
  return is_equal;
}

// Checks those that are named, or all.
bool check_shapes(const std::string& device, std::span<char*> arguments) {
  bool are_equal = true;
  const std::span<char*> names = arguments.subspan(1);
  for (const ModelShape& shape : model_shapes()) {
    const auto is_it = [&](const char* name) { return std::string_view(name) == shape.name; };
    if (names.empty() || std::ranges::any_of(names, is_it)) are_equal &= check_shape(device, shape, arguments[0]);
  }
  return are_equal;
}

int check_all(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda:0";
  if (const Status there = backend::check_device(device); !there) {
    fmt::print(stderr, "{}\n", there.error().message);
    return 3;
  }
  if (argc > 3 && std::string_view(argv[2]) == "--shapes") {
    return check_shapes(device, std::span(argv, static_cast<std::size_t>(argc)).subspan(3)) ? 0 : 1;
  }
  std::vector<DeviceCase> cases = device_cases();
  for (int i = 2; i < argc; ++i) cases.push_back({.name = argv[i], .model = argv[i], .is_real = true});
  bool are_equal = true;
  for (const DeviceCase& each : cases) are_equal &= check(device, each, false);
  for (const DeviceCase& each : fast_device_cases()) are_equal &= check(device, each, true);
  return are_equal ? 0 : 1;
}

}  // namespace
}  // namespace kvasir::testing

int main(int argc, char** argv) { return kvasir::testing::check_all(argc, argv); }
