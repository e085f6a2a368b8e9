#include "compress/quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "io/gguf_writer.h"
#include "io/mmap_file.h"

namespace kvasir::compress::quantizer_test {
namespace {

constexpr std::int64_t kHidden = 256, kVocab = 96, kFfn = 320;

std::string temp_path(const std::string& name) { return ::testing::TempDir() + "kvasir-quantizer-" + name; }

TensorView view(const std::string& name, std::int64_t length, std::int64_t rows) {
  return {.name = name, .rank = rows > 1 ? 2 : 1, .shape = {length, rows, 1, 1}};
}

// A file of floats with the tensors of two layers.
class SourceFile {
 public:
  explicit SourceFile(const std::string& name, float odd = 0.0f) : path_(temp_path(name)) {
    std::filesystem::remove(path_);
    std::vector<TensorView> tensors = {view("token_embd.weight", kHidden, kVocab), view("output_norm.weight", kHidden, 1)};
    for (int layer = 0; layer < 2; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output"}) tensors.push_back(view(prefix + part + ".weight", kHidden, kHidden));
      tensors.push_back(view(prefix + "ffn_up.weight", kHidden, kFfn));
      tensors.push_back(view(prefix + "ffn_down.weight", kFfn, kHidden));
    }
    const std::vector<io::GgufEntry> entries = {
        io::string_entry("general.architecture", "llama"), io::uint32_entry("llama.block_count", 2),
        io::uint32_entry("llama.attention.head_count", 8), io::uint32_entry("llama.attention.head_count_kv", 2),
        io::uint32_entry("split.count", 1),                io::string_entry("tokenizer.ggml.model", "none")};
    const io::GgufLayout layout(entries, tensors);
    auto writer = io::GgufWriter::open(path_, layout);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::vector<float> values(static_cast<std::size_t>(tensors[i].num_elements()));
      for (float& value : values) value = 0.03f * normal(random);
      if (odd != 0.0f && i == 3) values[77] = odd;
      EXPECT_TRUE(writer->write(i, 0, std::as_bytes(std::span(values))));
    }
    source_ = std::move(*io::open_gguf(path_));
    file_ = std::make_unique<io::MmapFile>(std::move(*io::MmapFile::open(path_)));
    entries_ = *io::read_gguf_entries(file_->bytes());
  }

  const io::WeightSource& source() const { return *source_; }
  const std::vector<io::GgufEntry>& entries() const { return entries_; }

 private:
  std::string path_;
  std::unique_ptr<io::WeightSource> source_;
  std::unique_ptr<io::MmapFile> file_;
  std::vector<io::GgufEntry> entries_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

QuantizePlan plan_of(const SourceFile& file, const QuantizeOptions& options, const io::Imatrix* imatrix = nullptr) {
  auto plan = plan_quantization(file.source(), file.entries(), options, {.imatrix = imatrix});
  EXPECT_TRUE(plan) << plan.error().message;
  return std::move(*plan);
}

io::Imatrix some_importance(const SourceFile& file) {
  io::Imatrix imatrix;
  std::mt19937 random(2);
  std::lognormal_distribution<float> spread(0.0f, 1.0f);
  for (const TensorView& tensor : file.source().tensors()) {
    if (!tensor.name.starts_with("blk.")) continue;
    auto& means = imatrix.mean_squares[tensor.name];
    for (std::int64_t i = 0; i < tensor.row_length(); ++i) means.push_back(spread(random));
    imatrix.counts[tensor.name] = {128.0f};
  }
  return imatrix;
}

TEST(Quantizer, WritesAFileThatReadsBack) {
  const SourceFile file("reads-back.gguf");
  const std::string out = temp_path("reads-back-q4.gguf");
  const QuantizePlan plan = plan_of(file, {.type = "Q4_K_M"});
  ThreadPool pool(2);
  const auto made = quantize(file.source(), plan, {}, "a", out, pool, {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(static_cast<std::int64_t>(std::filesystem::file_size(out)), plan.num_bytes);
  EXPECT_FALSE(std::filesystem::exists(out + ".part"));
  const auto opened = io::open_gguf(out);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->metadata().find_int("general.file_type", 0, 100)->value(), 15);
  EXPECT_EQ((*opened)->metadata().find("split.count"), nullptr);
  EXPECT_EQ(name_of((*opened)->find("token_embd.weight")->dtype), "Q6_K");
  EXPECT_EQ(name_of((*opened)->find("blk.1.attn_q.weight")->dtype), "Q4_K");
  EXPECT_EQ(name_of((*opened)->find("blk.1.ffn_down.weight")->dtype), "Q8_0");  // rows of 320, and more bits
  EXPECT_EQ(name_of((*opened)->find("output_norm.weight")->dtype), "F32");
  EXPECT_LT(made->errors[2], 0.01);
}

TEST(Quantizer, GivesTheSameBytesWhateverTheThreads) {
  const SourceFile file("threads.gguf");
  const io::Imatrix imatrix = some_importance(file);
  std::string first;
  for (const int num_threads : {1, 2, 5}) {
    const std::string out = temp_path("threads-out.gguf");
    ThreadPool pool(num_threads);
    const QuantizePlan plan = plan_of(file, {.type = "Q3_K_M"}, &imatrix);
    const auto made = quantize(file.source(), plan, {.imatrix = &imatrix}, "a", out, pool, {});
    ASSERT_TRUE(made);
    if (first.empty()) first = made->sha256;
    EXPECT_EQ(made->sha256, first);
  }
}

TEST(Quantizer, GoesOnWhereItWasStopped) {
  const SourceFile file("stopped.gguf");
  const std::string whole = temp_path("stopped-whole.gguf"), out = temp_path("stopped-out.gguf");
  const QuantizePlan plan = plan_of(file, {.type = "Q5_K_S"});
  ThreadPool pool(1);
  const auto expected = quantize(file.source(), plan, {}, "a", whole, pool, {});
  ASSERT_TRUE(expected);
  for (int stop_at = 1; stop_at <= 12; stop_at += 4) {
    std::filesystem::remove(out + ".part");
    int calls = 0;
    const auto stopped = quantize(file.source(), plan, {}, "a", out, pool, [&](std::int64_t, std::int64_t) { return ++calls < stop_at; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
    EXPECT_TRUE(std::filesystem::exists(out + ".part"));
    const auto resumed = quantize(file.source(), plan, {}, "a", out, pool, {});
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_EQ(resumed->num_resumed, stop_at - 1);
    EXPECT_EQ(resumed->sha256, expected->sha256);
    EXPECT_EQ(resumed->errors, expected->errors);
  }
  EXPECT_EQ(bytes_of(out), bytes_of(whole));
}

TEST(Quantizer, BeginsAnewForAnotherSource) {
  const SourceFile file("anew.gguf");
  const std::string out = temp_path("anew-out.gguf");
  const QuantizePlan plan = plan_of(file, {.type = "Q8_0"});
  ThreadPool pool(1);
  int calls = 0;
  EXPECT_FALSE(quantize(file.source(), plan, {}, "a", out, pool, [&](std::int64_t, std::int64_t) { return ++calls < 5; }));
  const auto made = quantize(file.source(), plan, {}, "b", out, pool, {});
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->began_anew);
  EXPECT_EQ(made->num_resumed, 0);
}

TEST(Quantizer, NamesTheElementThatIsNoNumber) {
  const SourceFile file("nan.gguf", NAN);
  ThreadPool pool(1);
  const auto made = quantize(file.source(), plan_of(file, {.type = "Q4_0"}), {}, "a", temp_path("nan-out.gguf"), pool, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::kBadFile);
  EXPECT_EQ(made.error().message, "tensor blk.0.attn_k.weight: element 77 is nan");
}

TEST(QuantizePlan, KeepsTensorsInTheTypesThatAreAskedFor) {
  const SourceFile file("keep.gguf");
  const QuantizePlan plan = plan_of(file, {.type = "Q4_0", .keep = {"ffn_down=Q8_0", "attn_.*=F16"}});
  for (const PlannedTensor& tensor : plan.tensors) {
    const bool is_down = tensor.source.name.find("ffn_down") != std::string::npos;
    const bool is_q = tensor.source.name.find("attn_q") != std::string::npos;
    if (is_down) {
      EXPECT_EQ(name_of(tensor.choice.type), "Q8_0");
    }
    if (is_q) {
      EXPECT_EQ(name_of(tensor.choice.type), "F16");
    }
  }
  for (const char* wrong : {"ffn_down", "ffn_down=Q9", "(=Q8_0", "ffn=IQ1_S"}) {
    const auto refused = plan_quantization(file.source(), file.entries(), {.type = "Q4_0", .keep = {wrong}}, {});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  }
}

TEST(QuantizePlan, CountsFallbacks) {
  const SourceFile file("fallbacks.gguf");
  const QuantizePlan plan = plan_of(file, {.type = "Q3_K_S"});
  EXPECT_EQ(plan.num_fallbacks, 2);  // rows of 320
  EXPECT_GT(plan.fallback_bytes, 0);
  const auto strict = plan_quantization(file.source(), file.entries(), {.type = "Q3_K_S", .is_strict = true}, {});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().kind, ErrorKind::kUsage);
}

TEST(QuantizePlan, RefusesImportanceOfAnotherShape) {
  const SourceFile file("importance.gguf");
  io::Imatrix imatrix = some_importance(file);
  imatrix.mean_squares["blk.0.attn_q.weight"].pop_back();
  const auto refused = plan_quantization(file.source(), file.entries(), {.type = "Q4_0"}, {.imatrix = &imatrix});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("has 256 inputs, its importance has 255"), std::string::npos);
}

TEST(Imatrix, IsReadAsItWasWritten) {
  const SourceFile file("imatrix.gguf");
  const io::Imatrix imatrix = some_importance(file);
  const std::string path = temp_path("written.imatrix");
  ASSERT_TRUE(io::write_imatrix(imatrix, path));
  const auto read = io::read_imatrix(path);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->mean_squares.size(), imatrix.mean_squares.size());
  for (const auto& [name, means] : imatrix.mean_squares) {
    const std::vector<float>& back = read->mean_squares.at(name);
    for (std::size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(back[i], means[i], 1e-6f * means[i]);
  }
}

}  // namespace
}  // namespace kvasir::compress::quantizer_test
