#include "compress/neighbour_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/gguf_reader.h"
#include "io/gguf_writer.h"

namespace kvasir::compress::neighbour_rows_test {
namespace {

constexpr std::int64_t kWidth = 32, kHeadDim = 8, kRows = 16;

TensorView view(const std::string& name, std::int64_t length, std::int64_t rows) {
  return {.name = name, .rank = rows > 1 ? 2 : 1, .shape = {length, rows, 1, 1}};
}

// Every number of a row is the row's own; those of a bias count up.
std::unique_ptr<io::WeightSource> source_with(std::vector<io::GgufEntry> more, const std::string& extra = "") {
  std::vector<io::GgufEntry> entries = {io::string_entry("general.architecture", "llama"), io::uint32_entry("llama.embedding_length", kWidth),
                                        io::uint32_entry("llama.attention.head_count", kWidth / kHeadDim)};
  entries.insert(entries.end(), more.begin(), more.end());
  std::vector<TensorView> tensors = {view("blk.0.attn_q.weight", kWidth, kRows), view("blk.0.attn_v.weight", kWidth, kRows),
                                     view("blk.0.attn_k.bias", kRows, 1)};
  if (!extra.empty()) tensors.push_back(view(extra, kHeadDim, 1));
  const std::string path = ::testing::TempDir() + "kvasir-neighbour-rows.gguf";
  std::filesystem::remove(path);
  const io::GgufLayout layout(entries, tensors);
  auto writer = io::GgufWriter::open(path, layout);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<float> values;
    for (std::int64_t row = 0; row < tensors[i].num_rows(); ++row) {
      for (std::int64_t k = 0; k < tensors[i].row_length(); ++k) values.push_back(static_cast<float>(tensors[i].num_rows() > 1 ? row : k));
    }
    EXPECT_TRUE(writer->write(i, 0, std::as_bytes(std::span(values))));
  }
  return std::move(*io::open_gguf(path));
}

std::vector<float> first_numbers(const io::WeightSource& source, const std::string& name, std::int64_t begin, std::int64_t end) {
  std::vector<std::byte> scratch;
  const TensorView rows = source.rows(*source.find(name), begin, end, scratch);
  std::vector<float> numbers;
  for (std::int64_t row = 0; row < end - begin; ++row) numbers.push_back(reinterpret_cast<const float*>(rows.row(row))[0]);
  return numbers;
}

TEST(NeighbourRows, QueriesStandAsGgufHasThem) {
  const auto source = source_with({io::string_entry("llama.rope.style", "halves")});
  const auto turned = with_neighbour_rows(*source);
  ASSERT_TRUE(turned && *turned);
  EXPECT_EQ((*turned)->metadata().find("llama.rope.style"), nullptr);
  EXPECT_EQ(first_numbers(**turned, "blk.0.attn_q.weight", 0, 10), (std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7, 8, 12}));
  EXPECT_EQ(first_numbers(**turned, "blk.0.attn_q.weight", 3, 5), (std::vector<float>{5, 2}));
  EXPECT_EQ(first_numbers(**turned, "blk.0.attn_v.weight", 0, 4), (std::vector<float>{0, 1, 2, 3}));
  std::vector<std::byte> scratch;
  const TensorView bias = (*turned)->rows(*(*turned)->find("blk.0.attn_k.bias"), 0, 1, scratch);
  const auto* numbers = reinterpret_cast<const float*>(bias.data);
  EXPECT_EQ(std::vector<float>(numbers + 8, numbers + 16), (std::vector<float>{8, 12, 9, 13, 10, 14, 11, 15}));
}

TEST(NeighbourRows, OnlyTurnedNumbersOfAHeadMove) {
  const auto source = source_with({io::string_entry("llama.rope.style", "halves"), io::uint32_entry("llama.rope.dimension_count", 4)});
  const auto turned = with_neighbour_rows(*source);
  ASSERT_TRUE(turned && *turned);
  EXPECT_EQ(first_numbers(**turned, "blk.0.attn_q.weight", 0, 8), (std::vector<float>{0, 2, 1, 3, 4, 5, 6, 7}));
}

TEST(NeighbourRows, OthersStayAsTheyAre) {
  const auto plain = with_neighbour_rows(*source_with({}));
  ASSERT_TRUE(plain);
  EXPECT_EQ(*plain, nullptr);
  const auto normed = with_neighbour_rows(*source_with({io::string_entry("llama.rope.style", "halves")}, "blk.0.attn_q_norm.weight"));
  ASSERT_TRUE(normed);
  EXPECT_EQ(*normed, nullptr);
}

TEST(NeighbourRows, HeadsThatDoNotDivideRowsAreAnError) {
  const auto source = source_with({io::string_entry("llama.rope.style", "halves"), io::uint32_entry("llama.attention.key_length", 12)});
  const auto turned = with_neighbour_rows(*source);
  ASSERT_FALSE(turned);
  EXPECT_EQ(turned.error().message, "tensor blk.0.attn_q.weight: heads of 12 do not divide its 16 rows");
}

}  // namespace
}  // namespace kvasir::compress::neighbour_rows_test
