#include "engine/open_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/testing/gguf_case.h"
#include "io/testing/safetensors_file.h"
#include "quant/encode/encode.h"
#include "quant/external/e4m3.h"

namespace kvasir::open_model_test {
namespace {

const std::string kModels = KVASIR_SOURCE_DIR "/tests/cases/models/";

TEST(OpenModel, GivesTensorsTokenizerAndTemplate) {
  const auto model = open_model(kModels + "llama-f32.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_NE(model->source().find("token_embd.weight"), nullptr);
  EXPECT_NE(model->load_tokenizer().value(), nullptr);
  EXPECT_NE(model->load_chat_template("").value(), nullptr);
  EXPECT_FALSE(model->generation_defaults());
}

TEST(OpenModel, APartThatTheFileLacksIsNull) {
  const auto model = open_model(kModels + "no-tokenizer.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->load_tokenizer().value(), nullptr);
  EXPECT_EQ(open_tokenizer(kModels + "no-tokenizer.gguf").error().message,
            kModels + "no-tokenizer.gguf: the file has no tokenizer");
}

TEST(OpenModel, ATemplateFromOutsideWinsAndItsFaultsAreTheCallers) {
  const auto model = open_model(kModels + "llama-f32.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->load_chat_template("{{ 1 }}").value()->source(), "{{ 1 }}");
  EXPECT_EQ(model->load_chat_template("{% if %}").error().kind, ErrorKind::kUsage);
}

TEST(OpenModel, ATemplateNamedForToolsIsChosenByThem) {
  const std::string path = testing::TempDir() + "tool_template.gguf";
  std::ofstream(path, std::ios::binary) << io::write_gguf(
      {"kv general.architecture string llama", "kv tokenizer.chat_template string {{messages[0].content}}",
       "kv tokenizer.chat_template.tool_use string {{tools|tojson}}<tool_call>{{messages[0].content}}"});
  const auto model = open_model(path);
  ASSERT_TRUE(model) << model.error().message;
  const auto own = model->load_chat_template("").value();
  EXPECT_EQ(own->source(), "{{messages[0].content}}");
  EXPECT_EQ(own->for_tools().source(), "{{tools|tojson}}<tool_call>{{messages[0].content}}");
  const auto other = model->load_chat_template("{{ 1 }}").value();
  EXPECT_EQ(other->for_tools().source(), "{{ 1 }}");
}

// Not by way of Q8_0, which rounds too.
TEST(OpenModel, RoundsWeightsOfEightBitFloatsOnce) {
  const std::string folder = testing::TempDir() + "fp8_folder";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json")
      << R"({"model_type":"llama","hidden_size":32,"intermediate_size":2,"num_hidden_layers":1,"num_attention_heads":1,)"
         R"("max_position_embeddings":64,"quantization_config":{"quant_method":"fp8"}})";
  const std::string bytes = io::safetensors_bytes(
      R"({"model.layers.0.mlp.up_proj.weight":{"dtype":"F8_E4M3","shape":[2,32],"data_offsets":[0,64]},)"
      R"("model.layers.0.mlp.up_proj.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[64,68]}})",
      68);
  std::ofstream(folder + "/model.safetensors", std::ios::binary) << bytes;
  float scale = 0.0f;
  std::memcpy(&scale, bytes.data() + bytes.size() - sizeof scale, sizeof scale);
  std::vector<float> values;
  for (std::uint8_t code = 0; code < 64; ++code) values.push_back(quant::e4m3_to_float(code) * scale);

  for (const DType type : {DType::kBF16, DType::kQ4_0, DType::kMXFP4}) {
    auto model = open_model(folder);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->source().find("blk.0.ffn_up.weight")->dtype, DType::kQ8_0);
    const auto quantized = model->quantize(type == DType::kBF16 ? "bf16" : type == DType::kQ4_0 ? "q4_0" : "mxfp4", 1);
    ASSERT_TRUE(quantized) << quantized.error().message;
    const TensorView& tensor = *model->source().find("blk.0.ffn_up.weight");
    EXPECT_EQ(tensor.dtype, type);
    std::vector<std::byte> scratch, expected(static_cast<std::size_t>(row_bytes(type, 64)));
    const TensorView rows = model->source().rows(tensor, 0, 2, scratch);
    quant::encoder_of(type)(values.data(), 64, expected.data());
    EXPECT_EQ(std::memcmp(rows.data, expected.data(), expected.size()), 0) << name_of(type);
  }
}

}  // namespace
}  // namespace kvasir::open_model_test
