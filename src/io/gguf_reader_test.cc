#include "io/gguf_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "io/testing/gguf_case.h"

namespace kvasir::io::gguf_reader_test {
namespace {

const std::string kCases = KVASIR_SOURCE_DIR "/tests/cases/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return std::move(out).str();
}

// Parses exactly these bytes from their own allocation, so that a sanitizer sees every read beyond them.
Result<GgufContents> parse(std::string_view bytes, std::unique_ptr<std::byte[]>& storage) {
  storage = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(storage.get(), bytes.data(), bytes.size());
  return parse_gguf({storage.get(), bytes.size()}, "x.gguf");
}

std::string error_of(std::string_view bytes) {
  std::unique_ptr<std::byte[]> storage;
  const auto contents = parse(bytes, storage);
  return contents ? std::string() : contents.error().message;
}

TEST(GgufReader, SaysWhatIsWrongWithEachCase) {
  const auto cases = read_gguf_cases(kCases + "gguf/files.txt");
  ASSERT_GE(cases.size(), 40u);
  for (const GgufCase& expected : cases) {
    SCOPED_TRACE(expected.title);
    const std::string wanted = expected.expected_error.empty() ? "" : "x.gguf: " + expected.expected_error;
    EXPECT_EQ(error_of(write_gguf(expected.lines)), wanted);
  }
}

TEST(GgufReader, WidensEveryFamilyOfMetadata) {
  std::unique_ptr<std::byte[]> storage;
  const auto contents = parse(
      write_gguf({"kv a.u64 u64 18446744073709551615", "kv a.i32 i32 -5", "kv a.f32 f32 0.5",
                  "kv a.bool bool 1", "array a.strings string 2 one -", "array a.ints i32 3 1 -2 3",
                  "array a.bools bool 2 1 0"}),
      storage);
  ASSERT_TRUE(contents) << contents.error().message;
  const Metadata& metadata = contents->metadata;
  EXPECT_EQ(std::get<std::uint64_t>(*metadata.find("a.u64")), 18446744073709551615u);
  EXPECT_EQ(std::get<std::int64_t>(*metadata.find("a.i32")), -5);
  EXPECT_EQ(std::get<double>(*metadata.find("a.f32")), 0.5);
  EXPECT_TRUE(std::get<bool>(*metadata.find("a.bool")));
  EXPECT_EQ(**metadata.find_strings("a.strings"), (std::vector<std::string>{"one", ""}));
  EXPECT_EQ(**metadata.find_ints("a.ints"), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(std::get<std::vector<bool>>(*metadata.find("a.bools")), (std::vector<bool>{true, false}));
}

TEST(GgufReader, PointsTensorsAtTheirBytes) {
  std::string bytes = write_gguf({"tensor one 0 4x2 0", "tensor two 8 32x1x3 32", "data 160"});
  bytes[bytes.size() - 160 + 32] = 42;
  std::unique_ptr<std::byte[]> storage;
  const auto contents = parse(bytes, storage);
  ASSERT_TRUE(contents) << contents.error().message;
  ASSERT_EQ(contents->tensors.size(), 2u);
  const TensorView& two = contents->tensors[1];
  EXPECT_EQ(two.name, "two");
  EXPECT_EQ(two.dtype, DType::kQ8_0);
  EXPECT_EQ(two.rank, 3);
  EXPECT_EQ(two.row_length(), 32);
  EXPECT_EQ(two.num_rows(), 3);
  EXPECT_EQ(two.num_bytes(), 3 * 34);
  EXPECT_EQ(static_cast<int>(two.data[0]), 42);
  EXPECT_EQ(two.data, storage.get() + bytes.size() - 160 + 32);
}

TEST(GgufReader, RefusesMoreMetadataThanItsLimitWithoutTakingTheMemory) {
  // 2^27 eight-bit numbers would be a GiB as 64-bit ones, on top of the entry itself.
  std::string bytes = write_gguf({"array a u8 134217728"});
  bytes.resize(bytes.size() + (1 << 27));
  EXPECT_EQ(
      error_of(bytes),
      "x.gguf: metadata: the value of a takes the metadata beyond 1073741824 bytes of memory, the limit");
}

TEST(GgufReader, KeepsMessagesOnOneLineWhateverTheNames) {
  std::string bytes = write_gguf({"tensor a_b_c 999 32 0", "data 128"});
  bytes[bytes.find("a_b_c") + 1] = '\n';
  bytes[bytes.find("b_c") + 1] = '\x1b';
  EXPECT_EQ(error_of(bytes), "x.gguf: tensor a\\x0ab\\x1bc: has the unknown type 999");
}

TEST(GgufReader, RefusesEveryTruncationOfTheHeader) {
  for (const char* name : {"no-tokenizer.gguf", "gemma3-q5_0.gguf"}) {
    const std::string whole = read_file(kCases + "models/" + name);
    std::unique_ptr<std::byte[]> storage;
    const auto contents = parse(whole, storage);
    ASSERT_TRUE(contents) << contents.error().message;
    const auto header_bytes = static_cast<std::size_t>(contents->tensors.front().data - storage.get());
    ASSERT_LT(header_bytes, 20000u);
    for (std::size_t size = 0; size <= header_bytes; ++size) {
      const std::string message = error_of(std::string_view(whole).substr(0, size));
      ASSERT_FALSE(message.empty()) << name << " cut to " << size;
      ASSERT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(GgufReader, RefusesEveryTruncationOfTheData) {
  const std::string whole = read_file(kCases + "models/llama-q4_k.gguf");
  ASSERT_EQ(error_of(whole), "");
  for (std::size_t size = 0; size < whole.size(); size += 4096) {
    ASSERT_NE(error_of(std::string_view(whole).substr(0, size)), "") << "cut to " << size;
  }
}

}  // namespace
}  // namespace kvasir::io::gguf_reader_test
