#include "model/weight_loader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "model/metadata_source.h"

namespace kvasir::model::weight_loader_test {
namespace {

// The error after the loader was asked for these vectors of eight.
std::string error_of(const std::vector<std::string>& in_file, const std::vector<std::string>& asked) {
  ThreadPool pool(1);
  backend::CpuBackend backend(kernels::best_table(), pool, backend::Precision::kExact);
  const MetadataSource source({}, in_file);
  WeightLoader loader = WeightLoader::dry(source, backend);
  for (const std::string& name : asked) EXPECT_TRUE(loader.optional_vector(name, 8)) << name;
  const auto status = loader.check_all_used(ModelConfig());
  return status ? "" : status.error().message;
}

TEST(WeightLoader, NamesAnOptionalVectorThatOneLayerLacks) {
  const std::vector<std::string> asked = {"blk.0.attn_q.bias", "blk.1.attn_q.bias", "blk.1.ffn_up.bias", "cls.bias"};
  const std::string expected = "tensor blk.1.attn_q.bias: missing, and another layer has blk.0.attn_q.bias";
  EXPECT_EQ(error_of({"blk.0.attn_q.bias"}, asked), expected);
  EXPECT_EQ(error_of({"blk.0.attn_q.bias", "cls.bias"}, asked), expected);
  EXPECT_EQ(error_of({"blk.0.attn_q.bias", "blk.1.attn_q.bias"}, asked).find("missing"), std::string::npos);
  EXPECT_EQ(error_of({"blk.0.other.bias"}, asked).find("missing"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::model::weight_loader_test
