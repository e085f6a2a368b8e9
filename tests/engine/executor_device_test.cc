// The GPU backend on the host executor (src/backend/cuda/simt/) says what the CPU says, bit for bit: tokens,
// log-probabilities and embeddings of every golden, and of the tiny models in each weight format. So do they in the fast
// mode. KVASIR_EXECUTOR_MODEL names a real model to run instead, for eight tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cuda/runtime/simt_device.h"
#include "backend/registry.h"
#include "device_answers.h"
#include "shape_model.h"

namespace kvasir::testing::executor_device_test {
namespace {

constexpr const char* kExecutor = "executor";

std::vector<DeviceCase> real_model_or(std::vector<DeviceCase> (*cases)()) {
  if (const char* model = std::getenv("KVASIR_EXECUTOR_MODEL")) return {{.name = "real", .model = model, .is_real = true}};
  return cases();
}

// Each device has another order of threads.
void add_executor() {
  static std::uint32_t order = 0;
  backend::add_gpu(kExecutor,
                   []() -> Result<std::unique_ptr<backend::GpuDevice>> { return cuda::make_simt_device({.order = order++ % 8}); });
}

std::string tiny_model(const std::string& name) {
  return std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf";
}

struct Case : DeviceCase {};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> named_cases(std::vector<DeviceCase> (*cases)()) {
  std::vector<Case> all;
  for (DeviceCase& each : real_model_or(cases)) all.push_back({std::move(each)});
  return all;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& each) {
  std::string name = each.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
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

INSTANTIATE_TEST_SUITE_P(Models, ExecutorDevice, ::testing::ValuesIn(named_cases(device_cases)), name_of_case);

class FastExecutorDevice : public ::testing::TestWithParam<Case> {};

TEST_P(FastExecutorDevice, SaysWhatTheCpuSaysInTheFastMode) {
  add_executor();
  const auto cpu = load_on("cpu", GetParam().model, {.fast = true});
  ASSERT_TRUE(cpu) << cpu.error().message;
  const auto executor = load_on(kExecutor, GetParam().model, {.fast = true});
  ASSERT_TRUE(executor) << executor.error().message;
  const std::vector<Answer> expected = device_answers(**cpu, GetParam());
  EXPECT_EQ(first_difference(device_answers(**executor, GetParam()), expected), "");
  if (GetParam().is_real) return;  // its eight tokens may be those of the exact mode
  const auto exact = load_on("cpu", GetParam().model);
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_NE(first_difference(device_answers(**exact, GetParam()), expected), "");
}

INSTANTIATE_TEST_SUITE_P(Models, FastExecutorDevice, ::testing::ValuesIn(named_cases(fast_device_cases)), name_of_case);

// Attention runs in pieces there, for partial results have little room.
TEST(ExecutorDevice, SaysTheSameWithLittleMemory) {
  add_executor();
  const DeviceCase each = {.name = "little", .model = tiny_model("llama-f32")};
  const auto cpu = load_on("cpu", each.model);
  ASSERT_TRUE(cpu) << cpu.error().message;
  const auto executor = load_on(kExecutor, each.model, {.gpu_memory_bytes = 40 << 20});
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_EQ(first_difference(device_answers(**executor, each), device_answers(**cpu, each)), "");
}

// The host multiplies for the layers that the device has no room for.
TEST(ExecutorDevice, SaysTheSameWithSomeLayersOfTheHost) {
  add_executor();
  for (const char* name : {"llama-q4_k", "llama-f32", "qwen2-q8_0", "qwen3moe-q4_0", "gemma3-q5_0"}) {
    SCOPED_TRACE(name);
    const DeviceCase each = {.name = name, .model = tiny_model(name)};
    const auto cpu = load_on("cpu", each.model);
    ASSERT_TRUE(cpu) << cpu.error().message;
    const std::vector<Answer> expected = device_answers(**cpu, each);
    for (const std::int32_t num_layers : {0, 1}) {
      const auto executor = load_on(kExecutor, each.model, {.gpu_layers = num_layers});
      ASSERT_TRUE(executor) << executor.error().message;
      std::int32_t num_layers_of_model = 0;
      for (const KvGroupInfo& group : (*executor)->model_info().kv_groups) num_layers_of_model += group.num_layers;
      const bool keeps_all = num_layers == num_layers_of_model;
      EXPECT_EQ((*executor)->model_info().notices.empty(), keeps_all);
      EXPECT_EQ(first_difference(device_answers(**executor, each), expected), "");
    }
    const auto fast_cpu = load_on("cpu", each.model, {.fast = true});
    const auto fast = load_on(kExecutor, each.model, {.gpu_layers = 1, .fast = true});
    ASSERT_TRUE(fast_cpu && fast);
    EXPECT_EQ(first_difference(device_answers(**fast, each), device_answers(**fast_cpu, each)), "");
  }
}

// As many layers as fit are the device's.
TEST(ExecutorDevice, LeavesLayersToTheHostWhereMemoryIsShort) {
  add_executor();
  const std::string model = tiny_model("qwen3moe-q4_0");
  std::int32_t num_refused = 0, num_partial = 0, num_whole = 0;
  for (std::int64_t gpu_memory_bytes = 1 << 18; num_whole == 0 && gpu_memory_bytes < 64 << 20; gpu_memory_bytes += 1 << 13) {
    const auto engine = load_on(kExecutor, model, {.gpu_memory_bytes = gpu_memory_bytes});
    if (!engine) {
      ++num_refused;
      EXPECT_EQ(num_partial, 0);
    } else {
      ++((*engine)->model_info().notices.empty() ? num_whole : num_partial);
    }
  }
  EXPECT_GT(num_refused, 0);
  EXPECT_GT(num_partial, 0);
  EXPECT_EQ(num_whole, 1);
}

// Launches wait there, and lists of them that come again run from what was kept of them.
TEST(ExecutorDevice, SaysTheSameInGraphs) {
  static backend::GpuDevice* device = nullptr;
  backend::add_gpu("graphs", []() -> Result<std::unique_ptr<backend::GpuDevice>> {
    auto made = cuda::make_simt_device({.uses_graphs = true});
    device = made.get();
    return made;
  });
  for (const char* name : {"llama-q4_k", "qwen3moe-q4_0", "gemma3-q5_0"}) {
    SCOPED_TRACE(name);
    const DeviceCase each = {.name = name, .model = tiny_model(name)};
    const auto cpu = load_on("cpu", each.model);
    const auto graphs = load_on("graphs", each.model);
    ASSERT_TRUE(cpu && graphs);
    EXPECT_EQ(first_difference(device_answers(**graphs, each), device_answers(**cpu, each)), "");
    // One sequence that decodes: its steps are alike.
    const Request request = greedy_request({1, 2, 3}, 12);
    EXPECT_EQ(generate(**graphs, {request})[0].token_ids, generate(**cpu, {request})[0].token_ids);
    EXPECT_GE(device->counts().replayed_lists, 8);
  }
}

// The copies of each of 16 steps that decode one sequence.
backend::GpuDevice::Counts copies_of_16_steps(const std::string& model) {
  static backend::GpuDevice* device = nullptr;
  backend::add_gpu("counted", []() -> Result<std::unique_ptr<backend::GpuDevice>> {
    auto made = cuda::make_simt_device();
    device = made.get();
    return made;
  });
  const auto engine = load_on("counted", tiny_model(model));
  if (!engine) return {};
  const auto count = [&](std::int32_t num_tokens) {
    const backend::GpuDevice::Counts before = device->counts();
    Request request = greedy_request({1, 2, 3, 4, 5}, num_tokens);
    request.sampling.ignore_eos = true;
    generate(**engine, {request});
    const backend::GpuDevice::Counts after = device->counts();
    return backend::GpuDevice::Counts{.copies_in = after.copies_in - before.copies_in,
                                      .copies_out = after.copies_out - before.copies_out};
  };
  count(2);
  const backend::GpuDevice::Counts few = count(4), more = count(20);
  return {.copies_in = more.copies_in - few.copies_in, .copies_out = more.copies_out - few.copies_out};
}

// A step's data go over once, not for each layer: a copy costs more than a small kernel.
TEST(ExecutorDevice, CopiesDoNotGrowWithTheLayers) {
  const backend::GpuDevice::Counts of_one = copies_of_16_steps("llama-q4_k"), of_two = copies_of_16_steps("llama-f32");
  EXPECT_EQ(of_one.copies_in, 16 * 9 + 1);  // and the references of a block that begins
  EXPECT_EQ(of_one.copies_out, 16 * 3);
  EXPECT_EQ(of_two.copies_in, of_one.copies_in);
  EXPECT_EQ(of_two.copies_out, of_one.copies_out);
}

// The files that scripts/gpu_check.sh makes where there are none, here of the same shapes in small.
TEST(ExecutorDevice, RunsModelsOfShapes) {
  add_executor();
  for (ModelShape shape : model_shapes()) {
    SCOPED_TRACE(shape.name);
    shape.num_layers = 2;
    shape.hidden_size = shape.intermediate_size = shape.layer_type == DType::kQ4_K ? 256 : 96;
    shape.head_dim = 32;
    shape.vocab_size = 96;
    shape.num_experts = std::min(shape.num_experts, 4);
    shape.num_used_experts = std::min(shape.num_used_experts, 2);
    if (shape.layer_type == DType::kQ4_K) shape.num_heads = 8;  // a row of outputs is a whole block
    const std::string path = ::testing::TempDir() + "kvasir-shape-" + shape.name + ".gguf";
    ASSERT_TRUE(write_shape_model(shape, path, 1));
    const DeviceCase each = {.name = shape.name, .model = path};
    const auto cpu = load_on("cpu", path);
    ASSERT_TRUE(cpu) << cpu.error().message;
    const auto executor = load_on(kExecutor, path);
    ASSERT_TRUE(executor) << executor.error().message;
    EXPECT_EQ(first_difference(device_answers(**executor, each), device_answers(**cpu, each)), "");
    std::remove(path.c_str());
  }
}

// Layers take turns in blocks of their own numbers there. Two prompts, the longer one of several blocks.
TEST(ExecutorDevice, RunsLayerByLayerAsTheCpuDoes) {
  add_executor();
  for (const char* name : {"qwen3-q4_1", "llama-f32", "gemma3-q5_0"}) {
    SCOPED_TRACE(name);
    const auto cpu = load_on("cpu", tiny_model(name)), executor = load_on(kExecutor, tiny_model(name));
    ASSERT_TRUE(cpu && executor);
    std::vector<Request> requests;
    for (const std::int32_t length : {83, 5}) {
      const auto prompt = random_prompts(1, length, length, (*cpu)->model_info().vocab_size, 9)[0];
      requests.push_back(greedy_request(prompt, 0));
      requests.back().pooling = Pooling::kMean;
      requests.push_back(greedy_request(prompt, 0));
      requests.back().sampling.prompt_logprobs = 2;
      requests.back().use_prefix_cache = false;
    }
    const std::vector<Answer> expected = generate(**cpu, requests), found = generate(**executor, requests);
    EXPECT_FALSE(expected[0].embedding.empty());
    EXPECT_EQ(first_difference(found, expected), "");
    ASSERT_EQ(found[1].prompt_logprobs.size(), 83u);
    for (std::size_t i = 1; i < 83; ++i) {
      EXPECT_EQ(found[1].prompt_logprobs[i].chosen.logprob, expected[1].prompt_logprobs[i].chosen.logprob);
    }
    EXPECT_EQ(generate(**executor, {greedy_request({1, 2, 3}, 4)})[0].error, "");  // it is still there
  }
}

TEST(ExecutorDevice, RefusesGroupsOfHeadsThatAreTooLarge) {
  add_executor();
  ModelShape shape = model_shapes()[0];
  shape.num_layers = 1;
  shape.hidden_size = shape.intermediate_size = 96;
  shape.num_heads = 2 * backend::kMaxGpuGroupSize;
  shape.num_kv_heads = 1;
  shape.head_dim = 32;
  shape.vocab_size = 96;
  const std::string path = ::testing::TempDir() + "kvasir-large-groups.gguf";
  ASSERT_TRUE(write_shape_model(shape, path, 1));
  EXPECT_TRUE(load_on("cpu", path));
  const auto refused = load_on(kExecutor, path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "device: executor runs at most 16 query heads to a KV head, the model has 32");
  std::remove(path.c_str());
}

// Beams copy their last block there.
TEST(ExecutorDevice, FindsTheSameBeams) {
  add_executor();
  for (const char* name : {"llama-f32", "gemma3-q5_0"}) {
    SCOPED_TRACE(name);
    const auto cpu = load_on("cpu", tiny_model(name)), executor = load_on(kExecutor, tiny_model(name));
    ASSERT_TRUE(cpu && executor);
    Request request = greedy_request(random_prompts(1, 27, 27, (*cpu)->model_info().vocab_size, 2)[0], 12);
    request.sampling.n = request.sampling.beam_width = 3;
    const std::vector<Answer> expected = generate(**cpu, {request}), found = generate(**executor, {request});
    EXPECT_EQ(expected[0].error, "");
    EXPECT_EQ(std::ssize(expected[0].token_ids), 3 * 12);
    EXPECT_EQ(first_difference(found, expected), "");
  }
}

TEST(ExecutorDevice, RefusesWhatItDoesNotHave) {
  add_executor();
  const auto engine = load_on(kExecutor, tiny_model("llama-f32"));
  ASSERT_TRUE(engine);
  Request request = greedy_request({1, 2, 3}, 2);
  request.kv.budget = 0.5;
  const std::vector<Answer> answers = generate(**engine, {request});
  EXPECT_NE(answers[0].error.find("kv_policy: executor keeps keys and values as they are computed"), std::string::npos)
      << answers[0].error;
}

}  // namespace
}  // namespace kvasir::testing::executor_device_test
