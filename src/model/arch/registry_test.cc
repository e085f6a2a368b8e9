#include "model/arch/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "io/weight_source.h"
#include "model/metadata_source.h"

namespace kvasir::model::registry_test {
namespace {

struct Row {
  std::string_view name, relative;
};
#define KVASIR_UNSUPPORTED(name, relative, lacks) {name, relative},
constexpr Row kUnsupported[] = {
#include "model/arch/unsupported.def"
};
#undef KVASIR_UNSUPPORTED

std::string error_of(const std::string& architecture) {
  const auto config = load_config(MetadataSource({{"general.architecture", architecture}}));
  return config ? "" : config.error().message;
}

TEST(Registry, AnArchitectureIsSupportedOrInTheTableOfThoseThatAreNotOnce) {
  std::set<std::string_view> seen;
  for (const Row& row : kUnsupported) {
    EXPECT_EQ(find_architecture(row.name), nullptr) << row.name;
    EXPECT_TRUE(seen.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.relative.empty() || find_architecture(row.relative) != nullptr) << row.relative;
  }
  EXPECT_GE(seen.size(), 100u);
}

TEST(Registry, SaysWhatAnUnsupportedArchitectureIsNearAndLacks) {
  EXPECT_EQ(
      error_of("mamba"),
      "metadata general.architecture: 'mamba' is not supported: its nearest relative here is llama, and it "
      "needs Mamba layers as well");
  EXPECT_EQ(
      error_of("clip"),
      "metadata general.architecture: 'clip' is not supported: it is an image encoder, not a language model");
  EXPECT_NE(error_of("of-tomorrow").find("'of-tomorrow' is not supported (llama, "), std::string::npos);
}

TEST(Registry, SaysTheSameOfFolders) {
  const auto error = [](std::string_view type) {
    const auto mapping = hf_mapping(type, /*is_bidirectional=*/false);
    return mapping ? "" : mapping.error().message;
  };
  EXPECT_EQ(error("qwen3_5_text"),
            "model_type 'qwen3_5_text' is not supported: its nearest relative here is qwen3, and it needs gated "
            "delta-rule layers as well");
  EXPECT_EQ(error("deepseek_v3"),
            "model_type 'deepseek_v3' is not supported: its nearest relative here is llama, and it needs latent "
            "attention and experts as well");
  EXPECT_EQ(error("clip"), "model_type 'clip' is not supported: it is an image encoder, not a language model");
  EXPECT_NE(error("of-tomorrow").find("'of-tomorrow' is not supported (llama, "), std::string::npos);
  for (const std::string_view type : {"cohere", "gpt_bigcode", "glm_moe_dsa", "minimax", "mimo_v2_flash", "step3p5"}) {
    EXPECT_NE(error(type).find("its nearest relative here is"), std::string::npos) << type;
  }
}

// As `show` asks, without reading any weight.
TEST(Registry, FindsEveryTensorOfModelsThatRun) {
  ThreadPool pool(1);
  backend::CpuBackend backend(kernels::best_table(), pool, backend::Precision::kExact);
  const std::string tests = KVASIR_SOURCE_DIR "/tests";
  std::vector<std::string> paths = {tests + "/goldens/phi3/model.gguf", tests + "/goldens/gemma4-e/model.gguf",
                                    tests + "/goldens/gemma4-moe/model.gguf"};
  for (const auto& entry : std::filesystem::directory_iterator(tests + "/cases/models")) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  }
  EXPECT_GE(paths.size(), 10u);
  for (const std::string& path : paths) {
    const auto source = io::open_gguf(path);
    ASSERT_TRUE(source) << source.error().message;
    const std::vector<Error> faults = tensor_faults(**source, backend);
    EXPECT_TRUE(faults.empty()) << path << ": " << faults.front().message;
  }
}

}  // namespace
}  // namespace kvasir::model::registry_test
