#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/model_summary.h"
#include "io/testing/gguf_case.h"
#include "io/weight_source.h"

namespace kvasir::io::gguf_test {
namespace {

namespace fs = std::filesystem;
const std::string kModels = KVASIR_SOURCE_DIR "/tests/cases/models/";

class OpenGguf : public testing::Test {
 protected:
  OpenGguf() : folder_(fs::path(testing::TempDir()) / ("gguf_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~OpenGguf() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::vector<std::string>& lines) const {
    const std::string path = (folder_ / name).string();
    const std::string bytes = write_gguf(lines);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  fs::path folder_;
};

std::vector<std::string> part(int number, int count, const std::string& tensor) {
  return {"kv split.no u32 " + std::to_string(number), "kv split.count u32 " + std::to_string(count),
          "kv split.tensors.count u32 " + std::to_string(count), "tensor " + tensor + " 0 4 0", "data 32"};
}

Error error_of(const std::string& path) {
  const auto source = open_gguf(path);
  EXPECT_FALSE(source);
  return source ? Error{} : source.error();
}

TEST_F(OpenGguf, ReadsEveryModelFixture) {
  int num_models = 0;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (entry.path().extension() != ".gguf") continue;
    ++num_models;
    const auto source = open_gguf(entry.path().string());
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_NE((*source)->find("token_embd.weight"), nullptr);
    EXPECT_EQ((*source)->find("token_embd.weigh"), nullptr);
    EXPECT_FALSE(summarize(**source).architecture.empty());
    for (const TensorView& tensor : (*source)->tensors()) {
      EXPECT_EQ((*source)->find(tensor.name), &tensor);
      (*source)->release_pages(tensor);
    }
  }
  EXPECT_GE(num_models, 6);
}

TEST_F(OpenGguf, SummarizesAModel) {
  const auto source = open_gguf(kModels + "qwen3-q4_1.gguf");
  ASSERT_TRUE(source) << source.error().message;
  const ModelSummary summary = summarize(**source);
  EXPECT_EQ(summary.name, "tiny qwen3 Q4_1");
  EXPECT_EQ(summary.architecture, "qwen3");
  EXPECT_EQ(summary.quantization, "Q4_1");
  EXPECT_EQ(summary.license, "apache-2.0");
  EXPECT_EQ(summary.num_layers, 2);
  EXPECT_EQ(summary.context_length_tokens, 2048);
  EXPECT_EQ(summary.vocab_size, 283);
  EXPECT_TRUE(summary.has_chat_template);
  EXPECT_GT(summary.num_parameters, summary.weight_bytes);
}

TEST_F(OpenGguf, JoinsTheParts) {
  const std::string first = write("m-00001-of-00003.gguf", part(0, 3, "one"));
  write("m-00002-of-00003.gguf", part(1, 3, "two"));
  write("m-00003-of-00003.gguf", part(2, 3, "three"));
  const auto source = open_gguf(first);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->tensors().size(), 3u);
  for (const char* name : {"one", "two", "three"}) EXPECT_NE((*source)->find(name), nullptr) << name;
}

TEST_F(OpenGguf, NamesTheMissingPart) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, "one"));
  const Error error = error_of(first);
  EXPECT_EQ(error.kind, ErrorKind::kBadFile);
  EXPECT_EQ(error.message,
            (folder_ / "m-00002-of-00002.gguf").string() + ": cannot open: No such file or directory");
}

TEST_F(OpenGguf, PointsFromALaterPartToTheFirst) {
  const std::string second = write("m-00002-of-00002.gguf", part(1, 2, "two"));
  EXPECT_EQ(error_of(second).message,
            second + ": is part 2 of 2; open the first one: " + (folder_ / "m-00001-of-00002.gguf").string());
}

TEST_F(OpenGguf, RefusesPartsThatDoNotBelongTogether) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, "one"));
  const std::string second = write("m-00002-of-00002.gguf", part(2, 3, "two"));
  EXPECT_EQ(error_of(first).message, second + ": says it is part 3 of 3, but its name says part 2 of 2");
  write("m-00002-of-00002.gguf", part(1, 2, "one"));
  EXPECT_EQ(error_of(first).message, first + ": tensor one appears in two parts");
  write("m-00002-of-00002.gguf", {"kv split.no u32 1", "kv split.count u32 2"});
  EXPECT_EQ(error_of(first).message, first + ": split.tensors.count is 2, but the 2 parts hold 1 tensors");
  const std::string unnamed = write("m.gguf", part(0, 2, "one"));
  EXPECT_EQ(error_of(unnamed).message,
            unnamed + ": is part 1 of 2 and must be named <name>-00001-of-00002.gguf");
  const std::string absurd = write("n.gguf", {"kv split.count u32 4000000000"});
  EXPECT_EQ(error_of(absurd).message,
            absurd + ": metadata: split.count must be between 0 and 9999, but it is 4000000000");
}

// Tools that merge parts leave the counts behind, in whatever type.
TEST_F(OpenGguf, AFileWithAllTensorsIsWholeWhateverItsCountsSay) {
  for (const char* count : {"u16 0", "u16 1", "i32 0", "u64 1", "f32 0"}) {
    const std::string path = write("merged.gguf",
                                   {"kv split.no u16 0", std::string("kv split.count ") + count,
                                    "kv split.tensors.count i32 1", "tensor one 0 4 0", "data 32"});
    const auto source = open_gguf(path);
    ASSERT_TRUE(source) << count << ": " << source.error().message;
    EXPECT_NE((*source)->find("one"), nullptr);
  }
  const auto forgotten = open_gguf(write(
      "all.gguf", {"kv split.count u16 3", "kv split.tensors.count i32 1", "tensor one 0 4 0", "data 32"}));
  ASSERT_TRUE(forgotten) << forgotten.error().message;
}

TEST_F(OpenGguf, DescribesTensorsThatItCannotRead) {
  const std::string path = write("iq1.gguf",
                                 {"tensor a 0 4 0", "tensor b 19 256x2 32", "tensor c 99 4 32", "data 32"});
  EXPECT_EQ(error_of(path).message, path +
                                        ": tensor b: has type IQ1_S (19), supported are F32 F16 BF16 Q8_0 "
                                        "Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K Q2_K Q3_K IQ4_NL IQ4_XS MXFP4 "
                                        "NVFP4 TQ1_0 TQ2_0 IQ3_S IQ3_XXS IQ2_S IQ2_XS IQ2_XXS Q1_0 Q2_0");
  const auto source = open_gguf(path, TensorTypes::kAny);
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->tensors().size(), 1u);
  ASSERT_EQ((*source)->unsupported().size(), 2u);
  EXPECT_EQ((*source)->unsupported()[0].type, "IQ1_S");
  EXPECT_EQ((*source)->unsupported()[0].num_bytes, 2 * 50);
  EXPECT_EQ((*source)->unsupported()[1].type, "type 99");
  EXPECT_EQ(summarize(**source).quantization, "IQ1_S");
  EXPECT_EQ(summarize(**source).num_parameters, 4 + 512 + 4);
}

TEST_F(OpenGguf, RefusesWhatIsNoReadableFile) {
  const std::string missing = (folder_ / "missing.gguf").string();
  EXPECT_EQ(error_of(missing).kind, ErrorKind::kBadFile);
  EXPECT_EQ(error_of(missing).message, missing + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of(folder_.string()).kind, ErrorKind::kBadFile);
  EXPECT_EQ(error_of(folder_.string()).message, folder_.string() + ": is a folder, not a file");
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe).message, pipe + ": is not a regular file");
  const std::string empty = write("empty.gguf", {"cut 0"});
  EXPECT_EQ(error_of(empty).message, empty + ": header: the file is empty");
}

TEST_F(OpenGguf, RefusesAFileThatMayNotBeReadAsUnusable) {
  const std::string path = write("secret.gguf", {});
  fs::permissions(path, fs::perms::none);
  const bool is_root = ::geteuid() == 0;  // whom permissions do not stop
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(!is_root || ::seteuid(kNobody) == 0);
  const auto source = open_gguf(path);
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind, ErrorKind::kBadFile);
  EXPECT_EQ(source.error().message, path + ": cannot open: Permission denied");
}

}  // namespace
}  // namespace kvasir::io::gguf_test
