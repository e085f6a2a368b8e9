#include "store/catalogue.h"

#include <gtest/gtest.h>

namespace kvasir::store::catalogue_test {
namespace {

constexpr std::string_view kGood = R"(
[[model]]
name = "tiny"
description = "a tiny one"
license = "Apache-2.0"
file = "tiny.gguf"
sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
size_bytes = 7
chat_template = true
sources = [{ type = "path", path = "/models" }, { type = "pypi", packages = ["a", "b"], version = "1", members = "*" }]
)";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kGood);
  return text.replace(text.find(from), from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto catalogue = Catalogue::parse(text, "c.toml");
  return catalogue ? "" : catalogue.error().message;
}

TEST(Catalogue, BuiltInHasTheDefaultModelAndTheBaseModel) {
  const auto catalogue = Catalogue::parse(kBuiltInCatalogue, "built-in");
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  EXPECT_EQ(catalogue->default_name(), "smollm2:135m");
  const CatalogueEntry* smollm2 = catalogue->find("smollm2:135m");
  ASSERT_NE(smollm2, nullptr);
  EXPECT_EQ(smollm2->size_bytes, 98362432);
  EXPECT_TRUE(smollm2->has_chat_template);
  const CatalogueEntry* gemma3 = catalogue->find("gemma3:270m");
  ASSERT_NE(gemma3, nullptr);
  EXPECT_FALSE(gemma3->has_chat_template);
  EXPECT_EQ(catalogue->find("registry.ollama.ai/library/gemma3:270m"), gemma3);
  EXPECT_EQ(catalogue->find("registry.ollama.ai/library/gemma3"), gemma3);
  EXPECT_EQ(catalogue->find("registry.ollama.ai/ann/gemma3"), nullptr);
  EXPECT_EQ(std::get<PypiOrigin>(gemma3->origins.front()).packages.size(), 4u);
}

TEST(Catalogue, KeepsTheOrderOfSources) {
  const auto catalogue = Catalogue::parse(kGood, "c.toml");
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  const auto& origins = catalogue->entries().front().origins;
  ASSERT_EQ(origins.size(), 2u);
  EXPECT_EQ(type_of(origins[0]), "path");
  EXPECT_EQ(std::get<PypiOrigin>(origins[1]).packages, (std::vector<std::string>{"a", "b"}));
}

TEST(Catalogue, NamesLineAndFault) {
  EXPECT_EQ(error_of(with("size_bytes = 7", "size_bytes = 0")),
            "c.toml: line 2: size_bytes must be positive, not 0");
  EXPECT_EQ(error_of(with("size_bytes = 7", "size_bytes = \"7\"")),
            "c.toml: line 8: size_bytes must be a number of bytes");
  EXPECT_EQ(error_of(with("license = \"Apache-2.0\"", "")), "c.toml: line 2: license is missing");
  EXPECT_EQ(error_of(with("license", "licence")), "c.toml: line 5: unknown key licence");
  EXPECT_EQ(error_of(with("tiny.gguf", "../tiny.gguf")),
            "c.toml: line 2: file must be a plain file name, not ../tiny.gguf");
  EXPECT_EQ(error_of(with("0123456789abcdef0", "x")),
            "c.toml: line 2: sha256 must be 64 lower-case hex digits");
  EXPECT_EQ(error_of(with("\"path\", path", "\"ftp\", path")),
            "c.toml: line 10: type is \"ftp\", known are \"pypi\" and \"path\"");
  EXPECT_EQ(error_of(with("\"a\", \"b\"", "\"--index-url=x\"")),
            "c.toml: line 10: packages must be an array of names");
  EXPECT_EQ(error_of(std::string(kGood) + std::string(kGood)),
            "c.toml: line 12: the model tiny appears twice");
  EXPECT_TRUE(error_of("= 1").starts_with("c.toml: line 1: ")) << error_of("= 1");
}

TEST(Catalogue, AFolderNamesEachOfItsFiles) {
  const std::string sum = "sha256 = \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"";
  const auto folder = [&](const std::string& name) {
    std::string text(kGood);
    text.replace(text.find(sum), sum.size(), "");
    return text.replace(text.find("size_bytes = 7"), 14,
                        "files = [{ name = \"" + name + "\", " + sum + ", size_bytes = 7 }]");
  };
  EXPECT_EQ(error_of(folder("a/b")), "c.toml: line 2: the files of a folder are in one package");
  EXPECT_EQ(error_of(folder("../b")), "c.toml: line 8: name must be a path below the folder, not ../b");
  EXPECT_EQ(error_of(folder("a*")), "c.toml: line 8: name must be a path below the folder, not a*");
  EXPECT_EQ(error_of(folder("a\", sha = \"")), "c.toml: line 8: unknown key sha");
}

TEST(Catalogue, MergesAdditionsOverItsOwn) {
  auto ours = Catalogue::parse(kGood, "ours");
  auto theirs = Catalogue::parse("default = \"tiny\"\n" + with("a tiny one", "their tiny one"), "theirs");
  ASSERT_TRUE(ours && theirs);
  ASSERT_TRUE(ours->merge(std::move(*theirs), "theirs"));
  EXPECT_EQ(ours->entries().size(), 1u);
  EXPECT_EQ(ours->find("tiny")->description, "their tiny one");
  EXPECT_EQ(ours->default_name(), "tiny");
}

TEST(Catalogue, RefusesADefaultThatNobodyIsCalledAndAFileForTwo) {
  const auto error_of_merge = [](std::string_view additions) {
    auto ours = Catalogue::parse(kGood, "ours");
    auto theirs = Catalogue::parse(additions, "theirs");
    const Status status = ours->merge(std::move(*theirs), "theirs");
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(error_of_merge("default = \"other\""), "theirs: default is \"other\", which no model is called");
  EXPECT_EQ(error_of_merge(with("name = \"tiny\"", "name = \"other\"")),
            "theirs: the models tiny and other would share the file tiny.gguf");
}

}  // namespace
}  // namespace kvasir::store::catalogue_test
