#include "store/ollama_models.h"

#include <gtest/gtest.h>

namespace kvasir::store::ollama_models_test {
namespace {

std::string layer(const std::string& kind, const std::string& digest = std::string(64, 'a')) {
  return R"({"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":"sha256:)" + digest +
         R"(","size":7})";
}

std::string problem(const std::string& json) {
  const auto parsed = parse_ollama_manifest(json, "m");
  return parsed ? "" : parsed.error().message;
}

TEST(OllamaManifest, NamesTheWeights) {
  const auto parsed = parse_ollama_manifest(
      R"({"layers":[)" + layer("template") + "," + layer("model") + "," + layer("projector") + "]}", "m");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->digest, std::string(64, 'a'));
  EXPECT_EQ(parsed->size_bytes, 7);
}

TEST(OllamaManifest, SaysWhatItCannotBe) {
  EXPECT_EQ(problem(""), "m: is no manifest of Ollama");
  EXPECT_EQ(problem("{}"), "m: is no manifest of Ollama");
  EXPECT_EQ(problem(R"({"layers":[]})"), "m: names no weights");
  EXPECT_EQ(problem(R"({"layers":[)" + layer("model") + "," + layer("model") + "]}"),
            "m: the model has several files of weights, which is not supported");
  EXPECT_EQ(problem(R"({"layers":[)" + layer("model") + "," + layer("adapter") + "]}"),
            "m: the model has an adapter, which is not supported");
  for (const std::string& digest :
       {std::string("../../x"), std::string(63, 'a'), std::string(64, 'A'), std::string()}) {
    EXPECT_EQ(problem(R"({"layers":[)" + layer("model", digest) + "]}"),
              "m: the digest or the size of the weights is missing or wrong");
  }
}

TEST(OllamaManifest, NamesStayInTheirFolder) {
  for (const char* name :
       {"ollama:", "ollama:../x", "ollama:a/b/c/d", "ollama:a:", "ollama:a:..", "ollama:/a", "ollama:a//b"}) {
    const auto found = find_ollama_model(name, {"/nowhere"});
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().kind, ErrorKind::kUsage) << name;
  }
  EXPECT_EQ(find_ollama_model("ollama:a", {"/nowhere"}).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace kvasir::store::ollama_models_test
