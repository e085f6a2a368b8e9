#include "backend/cpu/bounded_argmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <span>

#include "backend/cpu/cpu_backend.h"
#include "kernels/isa.h"
#include "kernels/random_weights.h"

namespace kvasir::backend::bounded_argmax_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kWidth = 96;

// A backend with one head, and its logits of given rows.
class Head {
 public:
  Head(const char* isa, int num_threads, kernels::RandomWeights weights)
      : pool_(num_threads),
        backend_(*kernels::find_table(isa), pool_, Precision::kExact),
        weights_(std::move(weights)) {
    const TensorView tensor{.name = "head",
                            .dtype = weights_.dtype,
                            .rank = 2,
                            .shape = {weights_.k, weights_.num_rows, 1, 1},
                            .data = reinterpret_cast<const std::byte*>(weights_.bytes.data())};
    matrix_ = *backend_.make_matrix(tensor, MatrixUse::kArgmaxHead);
    backend_.pack_rows(tensor, 0, *matrix_);
    scratch_ = *backend_.make_activation(BoundedArgmax::kMaxRows, kWidth);
    x_ = *backend_.make_rows(BoundedArgmax::kMaxRows, kWidth);
    norm_.assign(kWidth, 1.0f);
  }

  struct Result {
    std::vector<float> logits, maxima;  // [rows, vocabulary], [rows, tiles]
  };
  Result run(const std::vector<float>& x, std::int32_t num_rows, std::optional<std::int32_t> argmax_of = {},
             std::span<const std::span<const std::uint64_t>> allowed = {}) {
    const auto vocab_size = static_cast<std::int32_t>(weights_.num_rows);
    const std::int32_t num_tiles = (vocab_size + kLogitsPerTile - 1) / kLogitsPerTile;
    std::memcpy(x_.data, x.data(), x.size() * sizeof(float));
    Result out;
    out.logits.assign(static_cast<std::size_t>(num_rows) * vocab_size, std::nanf(""));
    out.maxima.assign(static_cast<std::size_t>(num_rows) * num_tiles, std::nanf(""));
    std::vector<std::int32_t> rows(static_cast<std::size_t>(num_rows));
    std::iota(rows.begin(), rows.end(), 0);
    backend_.head({.x = x_,
                   .norm = {.kind = NormKind::kRms, .weight = norm_, .eps = 1e-6f},
                   .weight = matrix_.get(),
                   .logits = {.data = out.logits.data(), .stride = vocab_size, .width = vocab_size},
                   .tile_maxima = {.data = out.maxima.data(), .stride = num_tiles, .width = num_tiles},
                   .argmax_of = argmax_of,
                   .allowed = allowed},
                  rows, *scratch_);
    return out;
  }
  std::int64_t skipped_weight_bytes() const { return backend_.skipped_weight_bytes(); }
  std::int64_t packed_bytes() const { return matrix_->packed_bytes; }

 private:
  ThreadPool pool_;
  CpuBackend backend_;
  kernels::RandomWeights weights_;
  std::unique_ptr<Matrix> matrix_;
  std::unique_ptr<Activation> scratch_;
  Rows x_;
  std::vector<float> norm_;
};

std::vector<float> random_rows(std::int32_t num_rows, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(num_rows * kWidth));
  for (float& value : x) value = normal(random);
  x[7] *= 40.0f;
  return x;
}

// Logits that are left out are below the greatest; the others have the bits of `all`.
void expect_same_argmax(const Head::Result& all, const Head::Result& some, std::int32_t num_rows) {
  const std::size_t vocab_size = all.logits.size() / num_rows, num_tiles = all.maxima.size() / num_rows;
  for (std::int32_t row = 0; row < num_rows; ++row) {
    const float* logits = all.logits.data() + row * vocab_size;
    const float greatest = *std::max_element(logits, logits + vocab_size);
    for (std::size_t tile = 0; tile < num_tiles; ++tile) {
      const float whole = all.maxima[row * num_tiles + tile], part = some.maxima[row * num_tiles + tile];
      if (part != whole) {
        ASSERT_LT(whole, greatest);
        ASSERT_LT(part, greatest);
        ASSERT_NE(tile, num_tiles - 1);
      }
      if (part == -kInfinity) continue;
      for (std::size_t i = tile * kLogitsPerTile; i < std::min(vocab_size, (tile + 1) * kLogitsPerTile);
           ++i) {
        const float value = some.logits[row * vocab_size + i];
        ASSERT_TRUE(value == logits[i] || (value == -kInfinity && logits[i] < greatest)) << "token " << i;
      }
    }
  }
}

TEST(BoundedArgmax, AreThoseOfTheWholeHead) {
  for (const kernels::Isa& each : kernels::host_isas()) {
    const char* const isa = each.table.isa;
    for (const std::int64_t vocab_size : {1, 16, 50, 64, 65, 1000, 4099}) {
      const auto weights = kernels::random_weights(DType::kQ8_0, vocab_size, kWidth, 0.02f, 11);
      Head head(isa, 1 + static_cast<int>(vocab_size % 3), weights);
      for (std::int32_t num_rows = 1; num_rows <= BoundedArgmax::kMaxRows; ++num_rows) {
        SCOPED_TRACE(std::string(isa) + " " + std::to_string(vocab_size) + " " + std::to_string(num_rows));
        const std::vector<float> x = random_rows(num_rows, static_cast<std::uint32_t>(vocab_size + num_rows));
        const auto all = static_cast<std::int32_t>(vocab_size);
        expect_same_argmax(head.run(x, num_rows), head.run(x, num_rows, all), num_rows);
      }
    }
  }
}

// Equal rows have equal logits, and all of the greatest are there to choose the first of.
TEST(BoundedArgmax, KeepEveryOneOfEquals) {
  kernels::RandomWeights weights = kernels::random_weights(DType::kQ8_0, 640, kWidth, 0.02f, 4);
  const std::vector<float> x = random_rows(1, 8);
  Head::Result all = Head(kernels::best_table().isa, 1, weights).run(x, 1);
  const auto best = std::max_element(all.logits.begin(), all.logits.end()) - all.logits.begin();
  for (const std::int64_t copy : {3, 130, 400, 639}) {
    std::memcpy(weights.bytes.data() + copy * weights.row_bytes(), weights.row(best),
                static_cast<std::size_t>(weights.row_bytes()));
  }
  const Head::Result some = Head(kernels::best_table().isa, 2, weights).run(x, 1, 640);
  for (const std::int64_t copy : {3, 130, 400, 639}) {
    EXPECT_EQ(some.logits[static_cast<std::size_t>(copy)], all.logits[static_cast<std::size_t>(best)]);
  }
}

// Rows past the tokens are no logits: they neither win nor keep a token from winning, on any thread, and the
// last token's tile is complete wherever it lies.
TEST(BoundedArgmax, AreOfTokensAlone) {
  constexpr std::int64_t kNumRows = 6400;
  for (const std::int32_t num_tokens : {1, 63, 1000, 1024, 3210}) {
    kernels::RandomWeights weights = kernels::random_weights(DType::kQ8_0, kNumRows, kWidth, 0.02f, 9);
    const std::uint16_t large = float_to_half(1.0f);
    for (std::int64_t row = num_tokens; row < kNumRows; ++row) {
      for (std::int64_t b = 0; b < kWidth / 32; ++b) {
        std::memcpy(weights.bytes.data() + row * weights.row_bytes() + 34 * b, &large, 2);
      }
    }
    Head head(kernels::best_table().isa, 3, weights);
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
      const std::vector<float> x = random_rows(1, seed);
      const Head::Result all = head.run(x, 1), some = head.run(x, 1, num_tokens);
      const auto best = std::max_element(all.logits.begin(), all.logits.begin() + num_tokens);
      const std::int64_t token = best - all.logits.begin();
      ASSERT_EQ(some.logits[static_cast<std::size_t>(token)], *best) << num_tokens << " tokens";
      ASSERT_EQ(some.maxima[static_cast<std::size_t>(token / kLogitsPerTile)], *best);
      for (std::int32_t i = num_tokens / kLogitsPerTile * kLogitsPerTile; i < num_tokens; ++i) {
        ASSERT_EQ(some.logits[static_cast<std::size_t>(i)], all.logits[static_cast<std::size_t>(i)]);
      }
    }
  }
}

// The greatest of those that count, among rows of which each has a mask of its own or none.
TEST(BoundedArgmax, FindsTheGreatestOfThoseThatCount) {
  for (const kernels::Isa& each : kernels::host_isas()) {
    for (const std::int64_t vocab_size : {50, 64, 1000, 4099}) {
      const auto weights = kernels::random_weights(DType::kQ8_0, vocab_size, kWidth, 0.02f, 12);
      Head head(each.table.isa, 1 + static_cast<int>(vocab_size % 3), weights);
      for (std::uint32_t seed = 0; seed < 24; ++seed) {
        SCOPED_TRACE(std::string(each.table.isa) + " " + std::to_string(vocab_size) + " " + std::to_string(seed));
        const std::int32_t num_rows = 1 + static_cast<std::int32_t>(seed % 4);
        std::mt19937_64 random(seed);
        std::vector<std::vector<std::uint64_t>> masks(static_cast<std::size_t>(num_rows));
        std::vector<std::span<const std::uint64_t>> allowed;
        for (std::vector<std::uint64_t>& mask : masks) {
          for (std::int64_t tile = 0; tile * kLogitsPerTile < vocab_size && seed % 5 != 4; ++tile) {
            const std::uint64_t kind = random() % (seed % 3 + 2);
            mask.push_back(kind == 0 ? random() & random() & random() : kind == 1 ? 0 : ~std::uint64_t{0});
          }
          if (!mask.empty()) mask.front() |= std::uint64_t{1} << 3;
          allowed.push_back(mask);
        }
        const std::vector<float> x = random_rows(num_rows, seed);
        const Head::Result all = head.run(x, num_rows);
        const Head::Result some = head.run(x, num_rows, static_cast<std::int32_t>(vocab_size), allowed);
        for (std::int32_t row = 0; row < num_rows; ++row) {
          const float* const logits = all.logits.data() + row * vocab_size;
          const std::size_t num_tiles = all.maxima.size() / static_cast<std::size_t>(num_rows);
          float greatest = -kInfinity;
          for (std::int64_t i = 0; i < vocab_size; ++i) {
            const auto& mask = masks[static_cast<std::size_t>(row)];
            const bool counts = mask.empty() || (mask[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) != 0;
            if (counts) greatest = std::max(greatest, logits[i]);
          }
          const float* const maxima = some.maxima.data() + static_cast<std::size_t>(row) * num_tiles;
          ASSERT_EQ(*std::max_element(maxima, maxima + num_tiles), greatest);
          for (std::int64_t i = 0; i < vocab_size; ++i) {
            if (maxima[i / kLogitsPerTile] == -kInfinity) continue;
            const float value = some.logits[static_cast<std::size_t>(row * vocab_size + i)];
            const auto& mask = masks[static_cast<std::size_t>(row)];
            const bool counts = mask.empty() || (mask[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) != 0;
            if (!counts) {
              ASSERT_EQ(value, -kInfinity);
            } else if (logits[i] == greatest) {
              ASSERT_EQ(value, greatest);
            }
          }
        }
      }
    }
  }
}

// A row that stands out: nearly all of the low plane stays unread, and is counted.
TEST(BoundedArgmax, LeavesOutWhatCannotBeTheGreatest) {
  kernels::RandomWeights weights = kernels::random_weights(DType::kQ8_0, 8192, kWidth, 0.001f, 4);
  std::vector<float> x(kWidth, 1.0f);
  const std::uint16_t one = float_to_half(1.0f);
  for (std::int64_t b = 0; b < kWidth / 32; ++b) {
    char* block = weights.bytes.data() + 70 * weights.row_bytes() + 34 * b;
    std::memcpy(block, &one, 2);
    std::memset(block + 2, 100, 32);
  }
  Head head(kernels::best_table().isa, 1, weights);
  const Head::Result some = head.run(x, 1, 8192);
  EXPECT_EQ(some.maxima[1], some.logits[70]);
  EXPECT_GT(std::ranges::count(some.maxima, -kInfinity), 120);  // of 128 tiles
  EXPECT_GT(head.skipped_weight_bytes(), 0.4 * static_cast<double>(head.packed_bytes()));
  EXPECT_LT(head.skipped_weight_bytes(), 0.5 * static_cast<double>(head.packed_bytes()));
}

}  // namespace
}  // namespace kvasir::backend::bounded_argmax_test
