// Packed copies outlive the program that wrote them. Where this test fails, raise io::kPackedLayoutVersion and put the
// new numbers here: copies in the old layout are then made anew.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/registry.h"
#include "base/thread_pool.h"
#include "io/packed_file.h"
#include "kernels/random_weights.h"
#include "quant/encode/encode.h"

namespace kvasir::packed_layout_test {
namespace {

constexpr std::uint32_t kPinnedVersion = 2;

// Not std::mt19937 with a distribution: libraries differ in these.
class Bytes {
 public:
  char next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<char>(state_ >> 56);
  }

 private:
  std::uint64_t state_ = 1;
};

kernels::RandomWeights pinned_weights(DType dtype, std::int64_t num_rows, std::int64_t k) {
  kernels::RandomWeights weights{dtype, num_rows, k, {}};
  weights.bytes.resize(static_cast<std::size_t>(num_rows * weights.row_bytes()));
  Bytes bytes;
  const DTypeInfo& info = info_of(dtype);
  float scale = 0.001f;
  for (std::size_t at = 0; at < weights.bytes.size(); at += static_cast<std::size_t>(info.block_bytes)) {
    char* const block = weights.bytes.data() + at;
    if (info.block_elements > 1) std::generate_n(block, info.block_bytes, [&] { return bytes.next(); });
    for (const quant::FloatField& field : info.floats) {
      kernels::put_float(scale, field, block);
      scale = scale < 0.1f ? scale * 1.0625f : 0.001f;
    }
  }
  return weights;
}

std::uint64_t packed_hash(backend::Backend& backend, DType dtype, backend::MatrixUse use) {
  const kernels::RandomWeights weights = pinned_weights(dtype, 40, 512);
  const TensorView tensor{.name = "pinned",
                          .dtype = dtype,
                          .rank = 2,
                          .shape = {weights.k, weights.num_rows, 1, 1},
                          .data = reinterpret_cast<const std::byte*>(weights.bytes.data())};
  auto matrix = backend.make_matrix(tensor, use).value();
  backend.pack_rows(tensor, 0, *matrix);
  return io::hash_bytes(backend.host_bytes(*matrix));
}

std::uint64_t hash_of_all(backend::Precision precision) {
  ThreadPool pool(1);
  const auto backend = backend::make_cpu_backend("ref", pool, precision).value();
  std::uint64_t hash = 0;
  for (const DTypeInfo& info : kDTypeInfos) {
    const std::uint64_t one = packed_hash(*backend, info.dtype, backend::MatrixUse::kLayer);
    hash = io::hash_bytes(std::as_bytes(std::span(&one, 1)), hash);
  }
  const std::uint64_t head = packed_hash(*backend, DType::kQ8_0, backend::MatrixUse::kArgmaxHead);
  return io::hash_bytes(std::as_bytes(std::span(&head, 1)), hash);
}

TEST(PackedLayout, IsThatOfItsVersion) {
  EXPECT_EQ(io::kPackedLayoutVersion, kPinnedVersion);
  EXPECT_EQ(hash_of_all(backend::Precision::kExact), 702959306289481606u);
  EXPECT_EQ(hash_of_all(backend::Precision::kFast), 4734557564062418193u);
}

TEST(PackedLayout, OfWeightsThatAreQuantisedOnLoadIsThatOfItsVersion) {
  std::vector<float> values(1024);
  Bytes bytes;
  for (float& value : values) value = static_cast<float>(bytes.next()) / 64.0f;
  std::uint64_t hash = 0;
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kMXFP4}) {
    std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(dtype, std::ssize(values))));
    quant::encoder_of(dtype)(values.data(), std::ssize(values), row.data());
    hash = io::hash_bytes(row, hash);
  }
  EXPECT_EQ(hash, 15240568523198348428u);
}

// A matrix over bytes that were packed before is the matrix that packed them.
TEST(PackedLayout, IsAdoptedAsItIs) {
  ThreadPool pool(1);
  const auto backend = backend::make_cpu_backend("ref", pool, backend::Precision::kExact).value();
  const kernels::RandomWeights weights = pinned_weights(DType::kQ8_0, 40, 512);
  const TensorView tensor{.name = "pinned",
                          .dtype = DType::kQ8_0,
                          .rank = 2,
                          .shape = {weights.k, weights.num_rows, 1, 1},
                          .data = reinterpret_cast<const std::byte*>(weights.bytes.data())};
  for (const auto use : {backend::MatrixUse::kLayer, backend::MatrixUse::kArgmaxHead}) {
    auto packed = backend->make_matrix(tensor, use).value();
    backend->pack_rows(tensor, 0, *packed);
    EXPECT_EQ(backend->packed_size(tensor, use)->num_bytes, packed->packed_bytes);
    const auto adopted = backend->adopt_matrix(tensor, use, backend->host_bytes(*packed));
    ASSERT_TRUE(adopted) << adopted.error().message;
    EXPECT_EQ(backend->host_bytes(**adopted).data(), backend->host_bytes(*packed).data());
    EXPECT_EQ((*adopted)->packed_bytes, packed->packed_bytes);
    EXPECT_FALSE(backend->adopt_matrix(tensor, use, backend->host_bytes(*packed).first(64)));
  }
}

}  // namespace
}  // namespace kvasir::packed_layout_test
