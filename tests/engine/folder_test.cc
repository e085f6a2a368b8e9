// A model's folder of safetensors gives the answers of its GGUF file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "folder_writer.h"
#include "generate.h"

namespace kvasir::testing::folder_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLlama3 =
    R"(,"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
    R"("original_max_position_embeddings":256})";
constexpr double kTolerance = 1e-5;  // of the greatest logit: RoPE by halves rounds in another order

struct Fixture {
  const char* name;
  bool is_exact_in_f32 = true;  // else the file's weights are blocks, which are computed with rounded inputs
  const char* more_config = "";
};

std::string gguf_path(const std::string& name) {
  return std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf";
}

// One path for the logits of all positions and 64 greedy tokens.
struct Answers {
  std::vector<std::vector<float>> logits;
  std::vector<TokenId> tokens;
};

Answers answers_of(const std::string& path, const std::string& quantize = "") {
  Answers answers;
  const auto engine = Engine::load({.model_path = path,
                                    .num_threads = 2,
                                    .memory_bytes = 1ll << 30,
                                    .kv_cache_tokens = 1024,
                                    .kv_cache_type = KvCacheType::kF32,
                                    .quantize = quantize});
  EXPECT_TRUE(engine) << engine.error().message;
  if (!engine) return answers;
  const auto prompt = random_prompts(1, 200, 200, 64, 11).front();
  Request request = greedy_request(prompt, 0);
  request.use_prefix_cache = false;
  request.logits_observer = [&answers](std::int32_t, std::span<const float> logits) {
    answers.logits.emplace_back(logits.begin(), logits.end());
  };
  EXPECT_EQ(generate(**engine, {std::move(request)})[0].error, "");
  answers.tokens = generate(**engine, {greedy_request(prompt, 64)})[0].token_ids;
  return answers;
}

// The greatest difference of two logits over the greatest logit.
double difference(const Answers& a, const Answers& b) {
  double most = 0.0, greatest = 0.0;
  EXPECT_EQ(a.logits.size(), b.logits.size());
  for (std::size_t i = 0; i < std::min(a.logits.size(), b.logits.size()); ++i) {
    for (std::size_t j = 0; j < a.logits[i].size(); ++j) {
      most = std::max(most, std::abs(static_cast<double>(a.logits[i][j]) - b.logits[i][j]));
      greatest = std::max(greatest, std::abs(static_cast<double>(a.logits[i][j])));
    }
  }
  return most / greatest;
}

class ModelFolder : public ::testing::Test {
 protected:
  ModelFolder() : folder_((fs::path(::testing::TempDir()) / ("model_folder_" + std::to_string(::getpid()))).string()) {
    fs::remove_all(folder_);
  }
  ~ModelFolder() override { fs::remove_all(folder_); }

  Error error() const {
    const auto engine = Engine::load({.model_path = folder_, .num_threads = 1, .memory_bytes = 1ll << 30});
    EXPECT_FALSE(engine);
    return engine ? Error{} : engine.error();
  }

  std::string folder_;
};

class FolderOf : public ModelFolder, public ::testing::WithParamInterface<Fixture> {};
INSTANTIATE_TEST_SUITE_P(Models, FolderOf,
                         ::testing::Values(Fixture{"llama-f32"}, Fixture{"llama3-bf16", true, kLlama3},
                                           Fixture{"qwen2-q8_0", false}, Fixture{"qwen3-q4_1", false},
                                           Fixture{"gemma3-q5_0", false}),
                         [](const auto& param_info) {
                           std::string name(param_info.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(FolderOf, AnswersAsTheFileDoes) {
  const auto& [name, is_exact, more_config] = GetParam();
  write_folder(gguf_path(name), folder_, {.num_shards = 3, .more_config = more_config});
  const Answers of_folder = answers_of(folder_);
  const Answers of_file = answers_of(gguf_path(name));
  ASSERT_EQ(of_folder.logits.size(), 200u);
  EXPECT_LT(difference(of_file, of_folder), is_exact ? kTolerance : 0.08) << name;
  if (is_exact) {
    EXPECT_EQ(of_folder.tokens, of_file.tokens);
  }
}

// The tied head becomes Q8_0 in a copy of its own; rows are still looked up in the table as it is. Random weights of
// 64 inputs suffer much; weights of another row or block would give 1.4 and more.
TEST_F(ModelFolder, IsQuantisedWhileItLoads) {
  write_folder(gguf_path("llama-f32"), folder_);
  const Answers exact = answers_of(folder_);
  const std::pair<const char*, double> cases[] = {{"q8_0", 0.2}, {"q4_0", 1.1}, {"q4_k", 0.2}, {"mxfp4", 1.1}, {"bf16", 0.1}};
  for (const auto& [type, most] : cases) {  // rows of 64 are no blocks of q4_k: they become q8_0
    const double error = difference(exact, answers_of(folder_, type));
    EXPECT_GT(error, 1e-5) << type;
    EXPECT_LT(error, most) << type;
    EXPECT_LT(difference(answers_of(folder_, type), answers_of(gguf_path("llama-f32"), type)), most) << type;
  }
  const auto engine = Engine::load({.model_path = folder_, .memory_bytes = 1ll << 30, .quantize = "q3_k"});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message, "quantize: must be q8_0, q4_0, q4_k, mxfp4 or bf16, is q3_k");
}

TEST_F(ModelFolder, DependsOnEveryTensor) {
  write_folder(gguf_path("gemma3-q5_0"), folder_);
  const Answers whole = answers_of(folder_);
  for (const char* disturbed : {"model.layers.1.post_feedforward_layernorm.weight", "model.layers.2.self_attn.k_norm.weight",
                                "model.norm.weight", "model.layers.0.mlp.up_proj.weight"}) {
    const auto change = [disturbed](const std::string& name, std::vector<float>& values) {
      if (name == disturbed) std::ranges::for_each(values, [](float& value) { value += 0.125f; });
    };
    write_folder(gguf_path("gemma3-q5_0"), folder_, {.change = change});
    EXPECT_GT(difference(whole, answers_of(folder_)), 1e-3) << disturbed;
  }
}

TEST_F(ModelFolder, NamesAnArchitectureThatItDoesNotKnow) {
  fs::create_directories(folder_);
  std::ofstream(folder_ + "/config.json") << R"({"model_type":"nothing_known"})";
  EXPECT_TRUE(error().message.starts_with(folder_ + "/config.json: model_type 'nothing_known' is not supported (llama,"))
      << error().message;
  EXPECT_EQ(error().kind, ErrorKind::kBadFile);
}

TEST_F(ModelFolder, NamesTensorsThatAreNotTheModels) {
  write_folder(gguf_path("llama-f32"), folder_, {.more_config = R"(,"num_hidden_layers":1)"});
  EXPECT_TRUE(error().message.find("blk.1.") != std::string::npos ||
              error().message.find("layers.1.") != std::string::npos)
      << error().message;
}

TEST_F(ModelFolder, RefusesWeightsThatAreNoNumbers) {
  const auto change = [](const std::string& name, std::vector<float>& values) {
    if (name == "model.layers.0.mlp.up_proj.weight") values[5] = std::nanf("");
  };
  write_folder(gguf_path("llama-f32"), folder_, {.change = change});
  EXPECT_NE(error().message.find("tensor blk.0.ffn_up.weight: row 0, element 5: the value is nan"), std::string::npos)
      << error().message;
}

}  // namespace
}  // namespace kvasir::testing::folder_test
