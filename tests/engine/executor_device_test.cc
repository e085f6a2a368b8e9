// The GPU backend on the host executor (src/backend/cuda/simt/) says what the CPU says, bit for bit: tokens,
// log-probabilities and embeddings of every golden, and of the tiny models in each weight format. KVASIR_EXECUTOR_MODEL
// names a real model to run instead, for eight tokens.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cuda/runtime/simt_device.h"
#include "backend/registry.h"
#include "device_answers.h"

namespace kvasir::testing::executor_device_test {
namespace {

constexpr const char* kExecutor = "executor";

std::vector<DeviceCase> cases() {
  if (const char* model = std::getenv("KVASIR_EXECUTOR_MODEL")) return {{.name = "real", .model = model, .is_real = true}};
  return device_cases();
}

// Each device has another order of threads.
void add_executor() {
  static std::uint32_t order = 0;
  backend::add_gpu(kExecutor,
                   []() -> Result<std::unique_ptr<backend::GpuDevice>> { return cuda::make_simt_device(order++ % 8); });
}

struct Case : DeviceCase {};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> named_cases() {
  std::vector<Case> all;
  for (DeviceCase& each : cases()) all.push_back({std::move(each)});
  return all;
}

class ExecutorDevice : public ::testing::TestWithParam<Case> {};

TEST_P(ExecutorDevice, SaysWhatTheCpuSays) {
  add_executor();
  const auto cpu = load_on("cpu", GetParam().model);
  ASSERT_TRUE(cpu) << cpu.error().message;
  const auto executor = load_on(kExecutor, GetParam().model);
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_EQ((*executor)->model_info().device, kExecutor);
  EXPECT_EQ(first_difference(device_answers(**executor, GetParam()), device_answers(**cpu, GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Models, ExecutorDevice, ::testing::ValuesIn(named_cases()), [](const auto& each) {
  std::string name = each.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

// Attention runs in pieces there, for partial results have little room.
TEST(ExecutorDevice, SaysTheSameWithLittleMemory) {
  add_executor();
  const DeviceCase each = {.name = "little", .model = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf"};
  const auto cpu = load_on("cpu", each.model);
  ASSERT_TRUE(cpu) << cpu.error().message;
  const auto executor = load_on(kExecutor, each.model, 40 << 20);
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_EQ(first_difference(device_answers(**executor, each), device_answers(**cpu, each)), "");
}

TEST(ExecutorDevice, RefusesWhatItDoesNotHave) {
  add_executor();
  const auto engine = load_on(kExecutor, std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf");
  ASSERT_TRUE(engine);
  Request request = greedy_request({1, 2, 3}, 2);
  request.kv.budget = 0.5;
  const std::vector<Answer> answers = generate(**engine, {request});
  EXPECT_NE(answers[0].error.find("kv_policy: executor keeps keys and values as they are computed"), std::string::npos)
      << answers[0].error;
}

}  // namespace
}  // namespace kvasir::testing::executor_device_test
