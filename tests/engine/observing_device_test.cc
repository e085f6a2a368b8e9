// The backend that shows what matrices are multiplied by answers as the CPU does, and shows all of it.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/observing/observing_backend.h"
#include "backend/registry.h"
#include "device_answers.h"

namespace kvasir::testing::observing_device_test {
namespace {

class Watcher final : public backend::InputObserver {
 public:
  void observe(std::span<const std::string_view> names, std::span<const float> rows, std::int64_t width) override {
    for (const std::string_view name : names) {
      rows_of[std::string(name)] += std::ssize(rows) / width;
      first_of.try_emplace(std::string(name), rows.begin(), rows.begin() + width);
    }
  }
  bool wants_logits() const override { return is_curious; }
  void observe_stream(std::int32_t layer, std::span<const float> rows, std::int64_t width) override {
    if (!rows.empty() && width > 0) layers.insert(layer);
  }

  bool is_curious = true;
  std::map<std::string, std::int64_t> rows_of;
  std::map<std::string, std::vector<float>> first_of;
  std::set<std::int32_t> layers;
};

TEST(ObservingDevice, SaysWhatTheCpuSaysAndShowsEveryMatrix) {
  for (const char* file : {"llama-f32.gguf", "gemma3-q5_0.gguf"}) {
    Watcher watcher;
    backend::add_device("watched", [&](const kernels::KernelTable& kernels, ThreadPool& pool) {
      return std::make_unique<backend::ObservingBackend>(kernels, pool, watcher);
    });
    const DeviceCase each = {.name = file, .model = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + file};
    const auto cpu = load_on("cpu", each.model), watched = load_on("watched", each.model);
    ASSERT_TRUE(cpu) << cpu.error().message;
    ASSERT_TRUE(watched) << watched.error().message;
    EXPECT_EQ(first_difference(device_answers(**watched, each), device_answers(**cpu, each)), "") << file;
    const std::int32_t num_layers = (*watched)->model_info().num_layers;
    for (std::int32_t layer = 0; layer < num_layers; ++layer) {
      for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
        const std::string name = "blk." + std::to_string(layer) + "." + part + ".weight";
        EXPECT_GT(watcher.rows_of[name], 0) << file << " " << name;
      }
      EXPECT_TRUE(watcher.layers.contains(layer)) << file << " " << layer;
    }
    EXPECT_TRUE(watcher.layers.contains(backend::InputObserver::kHead));
  }
}

TEST(ObservingDevice, ShowsTheSameInputsToThoseWhoWantNoLogits) {
  const std::string file = "llama-f32.gguf";
  const DeviceCase each = {.name = file, .model = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + file};
  Watcher curious, other;
  other.is_curious = false;
  for (Watcher* watcher : {&curious, &other}) {
    backend::add_device("watched", [watcher](const kernels::KernelTable& kernels, ThreadPool& pool) {
      return std::make_unique<backend::ObservingBackend>(kernels, pool, *watcher);
    });
    const auto engine = load_on("watched", each.model);
    ASSERT_TRUE(engine) << engine.error().message;
    device_answers(**engine, each);
  }
  EXPECT_FALSE(curious.first_of.empty());
  EXPECT_EQ(other.first_of, curious.first_of);
}

}  // namespace
}  // namespace kvasir::testing::observing_device_test
