#include "engine/open_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "io/testing/gguf_case.h"

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

}  // namespace
}  // namespace kvasir::open_model_test
