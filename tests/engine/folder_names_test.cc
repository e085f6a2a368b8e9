// The folders of tests/goldens give the names, shapes, values and keys that a converter gave their GGUF files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "io/hf_config.h"
#include "io/model_folder.h"
#include "io/weight_source.h"
#include "model/model.h"

namespace kvasir::folder_names_test {
namespace {

namespace fs = std::filesystem;

const std::string kGoldens = KVASIR_SOURCE_DIR "/tests/goldens";

// Keys that folders do not give: the loader takes the number from elsewhere, or the same from another key.
constexpr std::string_view kOtherKeys[] = {"vocab_size", "rope.dimension_count", "rope.scaling.type",
                                           "rope.scaling.yarn_log_multiplier", "rope.scaling.yarn_attn_factor",
                                           "block_count", "nextn_predict_layers", "classifier.output_labels"};

struct Golden {
  std::unique_ptr<io::WeightSource> folder, gguf;
  std::string architecture;
  bool is_by_halves = false;
};

Result<const io::HfMapping*> mapping_of(const io::HfConfig& config) {
  bool is_bidirectional = false;
  const auto value = config.find("use_bidirectional_attention");
  if (value) is_bidirectional = value->get_bool().value_unsafe();
  return model::hf_mapping(config.model_type(), is_bidirectional);
}

std::vector<std::string> goldens() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kGoldens, ignored)) {
    const std::string folder = entry.path().string();
    const auto config = io::HfConfig::open(folder);
    if (config && fs::exists(folder + "/model.gguf") && mapping_of(*config)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

Golden open(const std::string& name) {
  const std::string path = kGoldens + "/" + name;
  const auto config = io::HfConfig::open(path);
  const io::HfMapping& mapping = **mapping_of(*config);
  auto folder = io::open_folder(path, *config, mapping, {});
  EXPECT_TRUE(folder) << folder.error().message;
  auto gguf = io::open_gguf(path + "/model.gguf");
  EXPECT_TRUE(gguf) << gguf.error().message;
  if (!folder || !gguf) return {};
  return {std::move(*folder), std::move(*gguf), std::string(mapping.architecture), mapping.rope_by_halves};
}

// Rows of learned positions, and tokens of the context, that a converter leaves out.
std::int64_t first_position_row(const Golden& golden) {
  return golden.folder->metadata().find_int(golden.architecture + ".first_position_row", 0, 99).value().value_or(0);
}

std::vector<float> values_of(const io::WeightSource& source, const TensorView& tensor) {
  std::vector<std::byte> scratch;
  const TensorView rows = source.rows(tensor, 0, tensor.num_rows(), scratch);
  std::vector<float> values(static_cast<std::size_t>(tensor.num_elements()));
  for (std::int64_t row = 0; row < tensor.num_rows(); ++row) {
    info_of(rows.dtype).unpack_row(rows.row(row), rows.row_length(), values.data() + row * rows.row_length());
  }
  return values;
}

class FolderNames : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Goldens, FolderNames, testing::ValuesIn(goldens()), [](const auto& param_info) {
  std::string name = param_info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// Where a folder turns by halves and the GGUF file by pairs, rows of Q and K are the same in another order.
TEST_P(FolderNames, AndValuesAreThoseOfTheGgufFile) {
  const Golden golden = open(GetParam());
  ASSERT_NE(golden.folder, nullptr);
  for (const TensorView& theirs : golden.gguf->tensors()) {
    if (theirs.name.starts_with("blk.") && golden.folder->find(theirs.name) == nullptr) {
      const std::int64_t layers = golden.folder->metadata().get_int(golden.architecture + ".block_count", 1, 99).value();
      if (std::stoll(theirs.name.substr(4)) >= layers) continue;  // it predicts further tokens
    }
    const TensorView* ours = golden.folder->find(theirs.name);
    ASSERT_NE(ours, nullptr) << theirs.name;
    const std::int64_t left_out = theirs.name == "position_embd.weight" ? first_position_row(golden) : 0;
    auto shape = theirs.shape;
    shape[1] += left_out;
    EXPECT_EQ(ours->shape, shape) << theirs.name;
    std::vector<float> a = values_of(*golden.folder, *ours), b = values_of(*golden.gguf, theirs);
    a.erase(a.begin(), a.begin() + left_out * theirs.row_length());
    const bool is_q_or_k = theirs.name.find("attn_q.") != std::string::npos || theirs.name.find("attn_k.") != std::string::npos;
    if (golden.is_by_halves && is_q_or_k) {
      std::ranges::sort(a);
      std::ranges::sort(b);
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 1e-6 * std::max(1.0f, std::abs(b[i]))) << theirs.name << " " << i;
    }
  }
  std::set<std::string> known;
  for (const TensorView& theirs : golden.gguf->tensors()) known.insert(theirs.name);
  for (const TensorView& ours : golden.folder->tensors()) {
    // The converter leaves it out; without a classifier so does the loader.
    EXPECT_TRUE(known.contains(ours.name) || ours.name.starts_with("pooler.")) << ours.name;
  }
}

TEST_P(FolderNames, HaveTheKeysOfTheGgufFile) {
  const Golden golden = open(GetParam());
  ASSERT_NE(golden.folder, nullptr);
  for (const auto& [key, value] : golden.gguf->metadata().values()) {
    if (!key.starts_with(golden.architecture + ".")) continue;
    const std::string suffix = key.substr(golden.architecture.size() + 1);
    if (std::ranges::find(kOtherKeys, suffix) != std::end(kOtherKeys)) continue;
    if (golden.gguf->metadata().is_array(key)) {
      EXPECT_EQ(golden.folder->metadata().find_ints(key).value(), golden.gguf->metadata().find_ints(key).value()) << key;
      continue;
    }
    const auto theirs = golden.gguf->metadata().find_float(key);
    if (!theirs || !*theirs) continue;
    const auto ours = golden.folder->metadata().find_float(key);
    ASSERT_TRUE(ours && *ours) << key;
    const double left_out = suffix == "context_length" ? static_cast<double>(first_position_row(golden)) : 0.0;
    EXPECT_NEAR(**ours - left_out, **theirs, 1e-6 * std::abs(**theirs)) << key;
  }
}

TEST(Folders, AreThereForEveryFamilyThatHasAGolden) { EXPECT_GE(goldens().size(), 20u); }

}  // namespace
}  // namespace kvasir::folder_names_test
