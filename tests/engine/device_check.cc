// Runs every golden on a device and on the CPU, and prints a row for each: scripts/gpu_check.sh.
//   kvasir_device_check DEVICE [MODEL...]     MODEL: a real model's file besides, eight tokens of it
// Exit code: 0, 1 for an answer that differs, 3 for a device that is not there.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "backend/registry.h"
#include "device_answers.h"

namespace kvasir::testing {
namespace {

// The row of a case; true where the device says what the CPU says.
bool check(const std::string& device, const DeviceCase& of) {
  const auto begin = std::chrono::steady_clock::now();
  std::string difference;
  const auto cpu = load_on("cpu", of.model);
  const auto other = load_on(device, of.model);
  if (!cpu || !other) {
    difference = "not loaded: " + (cpu ? other.error().message : cpu.error().message);
  } else {
    difference = first_difference(device_answers(**other, of), device_answers(**cpu, of));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("model\t{}\t{}\t{:.2f} s\n", of.name, difference.empty() ? "equal" : difference, seconds.count());
  return difference.empty();
}

int check_all(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda:0";
  if (const Status there = backend::check_device(device); !there) {
    fmt::print(stderr, "{}\n", there.error().message);
    return 3;
  }
  std::vector<DeviceCase> cases = device_cases();
  for (int i = 2; i < argc; ++i) cases.push_back({.name = argv[i], .model = argv[i], .is_real = true});
  bool are_equal = true;
  for (const DeviceCase& each : cases) are_equal &= check(device, each);
  return are_equal ? 0 : 1;
}

}  // namespace
}  // namespace kvasir::testing

int main(int argc, char** argv) { return kvasir::testing::check_all(argc, argv); }
