#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/attention_problem.h"
#include "kernels/every_isa.h"
#include "kernels/ref/kernels.h"
#include "kernels/table.h"

namespace kvasir::kernels::attention_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// Against cells of integer codes queries and weights are rounded to 15 bits.
constexpr double kCodesTolerance = 3e-4;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Attention : public EveryIsa {
 protected:
  AttentionOutput run(const AttentionProblem& problem) const {
    return problem.run(table().attention, table().attention_merge);
  }
  AttentionOutput run(const AttentionProblem& problem, std::int32_t first_token,
                      std::int32_t num_tokens) const {
    return problem.run(table().attention, table().attention_merge, first_token, num_tokens);
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Attention, testing::ValuesIn(host_tables()), isa_name);

bool same_bits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}
bool same_bits(const AttentionOutput& a, const AttentionOutput& b) {
  return a.out.size() == b.out.size() && same_bits(a.out.data(), b.out.data(), a.out.size()) &&
         same_bits(a.log_sum_exp.data(), b.log_sum_exp.data(), a.log_sum_exp.size()) &&
         std::memcmp(a.scores.data(), b.scores.data(), a.scores.size() * sizeof(double)) == 0;
}

AttentionShape random_shape(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  AttentionShape shape;
  shape.seed = seed;
  shape.group_size = pick({1, 2, 3, 4, 5, 7, 8});
  shape.head_dim = pick({64, 80, 96, 128, 256, 40, 22, 2});
  shape.num_keys = 1 + static_cast<int>(random() % pick({20, 200, 700, 1400}));
  shape.num_query_tokens = 1 + static_cast<int>(random() % std::min(shape.num_keys, pick({1, 4, 70})));
  shape.window = pick({0, 0, 1, 16, 100, 300});
  // To both sides, as encoders look: so many keys, or all.
  if (seed % 2 == 0) {
    shape.ahead = pick({1, 15, 40, 100, 1 << 29});
    shape.num_later_keys = static_cast<int>(random() % static_cast<unsigned>(shape.num_keys));
    shape.num_query_tokens = std::min(shape.num_query_tokens, shape.num_keys - shape.num_later_keys);
  }
  shape.softcap = pick({0, 0, 20});
  shape.format = pick({0, 0, 1}) != 0 ? KvFormat::kF32 : KvFormat::kF16;
  if (seed % 3 == 0 && kv::supports(KvFormat::kQ12, shape.head_dim)) shape.format = KvFormat::kQ12;
  constexpr int kFirst = static_cast<int>(KvFormat::kQ12);  // which leaves a cell as it is
  for (int i = pick({0, 0, 1, 3}); i > 0; --i) {
    shape.coarser.push_back(static_cast<KvFormat>(kFirst + random() % (kv::kNumKvFormats - kFirst)));
  }
  if (pick({0, 1}) != 0) {
    const int num_blocks = (shape.num_keys + kTokensPerCell - 1) / kTokensPerCell;
    // The newest block stays, so that every row sees its own key... or, with a window, at least some row
    // does.
    for (int b = 0; b + 1 < num_blocks; ++b) {
      if (random() % 4 == 0) shape.holes.push_back(b);
    }
  }
  return shape;
}

TEST_P(Attention, IsASoftmaxOverTheVisibleKeysAndSharesItOutToBlocks) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const AttentionShape shape = random_shape(seed);
    SCOPED_TRACE(shape.to_string());
    const AttentionProblem problem(shape);
    const AttentionOutput output = run(problem), dense = problem.dense();
    const bool has_codes = !shape.coarser.empty() || shape.format == KvFormat::kQ12;
    const double limit = has_codes ? kCodesTolerance : 5e-6;
    for (std::size_t row = 0; row < dense.log_sum_exp.size(); ++row) {
      if (std::isinf(dense.log_sum_exp[row])) {
        EXPECT_EQ(output.log_sum_exp[row], -kInfinity) << "row " << row;
      } else {
        EXPECT_NEAR(output.log_sum_exp[row], dense.log_sum_exp[row], limit) << "row " << row;
      }
    }
    for (std::size_t i = 0; i < dense.out.size(); ++i)
      ASSERT_NEAR(output.out[i], dense.out[i], limit) << "at " << i;
    for (std::size_t i = 0; i < dense.scores.size(); ++i) {
      ASSERT_NEAR(output.scores[i], dense.scores[i], limit) << "at " << i;
    }
  }
}

TEST(AttentionAcrossIsas, AgreesBitForBitWhereThereAreVectors) {
  const KernelTable* avx2 = find_table("avx2");
  const KernelTable* avx512 = find_table("avx512");
  if (avx2 == nullptr || avx512 == nullptr) GTEST_SKIP() << "this host has one vector ISA at most";
  for (std::uint32_t seed = 100; seed < 130; ++seed) {
    const AttentionShape shape = random_shape(seed);
    SCOPED_TRACE(shape.to_string());
    const AttentionProblem problem(shape);
    EXPECT_TRUE(same_bits(problem.run(avx2->attention, avx2->attention_merge),
                          problem.run(avx512->attention, avx512->attention_merge)));
  }
}

// Any split of the query tokens over calls, down to one token a call, gives the bits of one call.
TEST_P(Attention, OfATokenDoesNotDependOnTheTokensBesideIt) {
  for (std::uint32_t seed = 200; seed < 220; ++seed) {
    AttentionShape shape = random_shape(seed);
    shape.num_query_tokens = std::min(shape.num_keys - shape.num_later_keys, 70);
    SCOPED_TRACE(shape.to_string());
    const AttentionProblem problem(shape);
    const AttentionOutput whole = run(problem);
    const std::size_t out_size = std::size_t(shape.group_size) * shape.head_dim;
    for (std::int32_t step : {1, 3, 16, 29}) {
      for (std::int32_t token = 0; token < shape.num_query_tokens; token += step) {
        const std::int32_t count = std::min(step, shape.num_query_tokens - token);
        const AttentionOutput part = run(problem, token, count);
        ASSERT_TRUE(same_bits(part.out.data(), whole.out.data() + token * out_size, part.out.size()))
            << count << " tokens from " << token;
        ASSERT_TRUE(same_bits(part.log_sum_exp.data(), whole.log_sum_exp.data() + token * shape.group_size,
                              part.log_sum_exp.size()));
        ASSERT_TRUE(std::equal(
            part.scores.begin(), part.scores.end(),
            whole.scores.begin() + std::ptrdiff_t(token) * shape.group_size * problem.num_blocks()));
      }
    }
  }
}

// One chunk of outputs, row by row, as a kernel wrote them.
struct ChunkOutput {
  ChunkOutput(std::int64_t rows, std::int64_t head_dim)
      : out(rows * head_dim, kNan), max(rows, kNan), sum(rows, kNan) {}
  void attach(AttentionArgs& args) {
    args.out = out.data();
    args.max = max.data();
    args.sum = sum.data();
  }
  std::vector<float> out, max, sum;
};

TEST_P(Attention, OfAHeadDoesNotDependOnTheHeadsOfItsGroupNorOnBlockSums) {
  const AttentionShape shape = {.num_query_tokens = 9, .group_size = 5, .head_dim = 96, .num_keys = 333};
  const AttentionProblem problem(shape);
  ChunkOutput whole(problem.num_rows(), shape.head_dim);
  std::vector<float> block_sums(problem.num_rows() * (kTokensPerChunk / kTokensPerCell));
  AttentionArgs args = problem.chunk_args(0, 0, shape.num_query_tokens);
  whole.attach(args);
  args.block_sums = block_sums.data();
  table().attention(args);
  for (std::int32_t head = 0; head < shape.group_size; ++head) {
    ChunkOutput alone(shape.num_query_tokens, shape.head_dim);
    AttentionArgs one = problem.chunk_args(0, 0, shape.num_query_tokens);
    alone.attach(one);
    one.q += head * shape.head_dim;
    one.group_size = 1;
    table().attention(one);
    for (std::int32_t token = 0; token < shape.num_query_tokens; ++token) {
      const std::int64_t row = token * shape.group_size + head;
      EXPECT_TRUE(
          same_bits(&alone.out[token * shape.head_dim], &whole.out[row * shape.head_dim], shape.head_dim));
      EXPECT_EQ(alone.max[token], whole.max[row]);
      EXPECT_EQ(alone.sum[token], whole.sum[row]);
    }
  }
}

TEST_P(Attention, IsBlindToKeysAfterTheQueryAndBeforeTheWindow) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32, KvFormat::kQ12}) {
   for (const std::int32_t ahead : {0, 50}) {
    const AttentionShape shape = {.num_query_tokens = 40,
                                  .group_size = 3,
                                  .head_dim = 64,
                                  .num_keys = 700,
                                  .num_later_keys = 200,
                                  .window = 90,
                                  .ahead = ahead,
                                  .format = format};
    SCOPED_TRACE(shape.to_string());
    AttentionProblem problem(shape);
    const std::int32_t token = 20, position = problem.first_position() + token;
    const AttentionOutput clean = run(problem);
    for (const float poison : {kNan, kInfinity, -kInfinity}) {
      const std::vector<float> garbage(shape.head_dim, poison);
      for (std::int32_t key = 0; key < shape.num_keys; ++key) {
        if (!problem.is_visible(position, key)) problem.write_key(key, garbage.data(), garbage.data());
      }
      const AttentionOutput poisoned = run(problem);
      const std::size_t begin = std::size_t(token) * shape.group_size * shape.head_dim;
      EXPECT_TRUE(
          same_bits(&clean.out[begin], &poisoned.out[begin], std::size_t(shape.group_size) * shape.head_dim));
      EXPECT_TRUE(same_bits(&clean.log_sum_exp[token * shape.group_size],
                            &poisoned.log_sum_exp[token * shape.group_size], shape.group_size));
    }
   }
  }
}

// A result that cannot be computed must not look like an answer: the caller finds that in the output.
TEST_P(Attention, OfAQueryThatIsNoNumberIsNone) {
  for (const KvFormat format :
       {KvFormat::kF16, KvFormat::kQ12, KvFormat::kQ8, KvFormat::kK4V4, KvFormat::kK4cV3}) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (const std::int32_t num_tokens : {1, 30}) {
        const AttentionShape shape = {.num_query_tokens = num_tokens,
                                      .group_size = 3,
                                      .head_dim = 64,
                                      .num_keys = 400,
                                      .coarser = {format}};
        SCOPED_TRACE(testing::Message() << bad << ", " << shape.to_string());
        const AttentionProblem problem(shape);
        AttentionArgs args = problem.chunk_args(0, 0, num_tokens);
        ChunkOutput clean(problem.num_rows(), shape.head_dim), output(problem.num_rows(), shape.head_dim);
        clean.attach(args);
        table().attention(args);
        std::vector<float> q(args.q, args.q + problem.num_rows() * shape.head_dim);
        q[shape.head_dim + 5] = bad;  // of row 1
        args.q = q.data();
        output.attach(args);
        table().attention(args);
        for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
          const float* out = &output.out[row * shape.head_dim];
          if (row == 1) {
            EXPECT_FALSE(std::isfinite(out[0] / output.sum[row]));
          } else {
            EXPECT_TRUE(same_bits(out, &clean.out[row * shape.head_dim], shape.head_dim)) << "row " << row;
          }
        }
      }
    }
  }
}

// A block taken away equals the same block with its keys so far off that their weights are exactly 0.
TEST_P(Attention, PassesOverAHoleAsIfItsKeysWereMasked) {
  for (const std::vector<std::int32_t>& holes :
       std::vector<std::vector<std::int32_t>>{{1}, {0, 3}, {4, 5, 6, 7}, {0, 1, 2, 3, 9, 17, 31, 32}}) {
    AttentionShape shape = {.num_query_tokens = 1, .head_dim = 64, .num_keys = 600, .format = KvFormat::kF32};
    AttentionProblem masked(shape);
    const AttentionArgs args = masked.chunk_args(0, 0, 1);
    std::vector<float> opposite(shape.head_dim);
    for (std::int32_t d = 0; d < shape.head_dim; ++d) opposite[d] = args.q[d] > 0 ? -1e6f : 1e6f;
    const std::vector<float> value(shape.head_dim, 3.0f);
    for (std::int32_t hole : holes) {
      for (std::int32_t key = 0; key < kTokensPerCell; ++key) {
        masked.write_key(hole * kTokensPerCell + key, opposite.data(), value.data());
      }
    }
    shape.holes = holes;
    SCOPED_TRACE(shape.to_string());
    EXPECT_TRUE(same_bits(run(AttentionProblem(shape)), run(masked)));
  }
}

TEST_P(Attention, OfARowWithoutKeysIsZero) {
  AttentionShape shape = {.num_query_tokens = 20, .group_size = 3, .head_dim = 64, .num_keys = 600};
  for (std::int32_t b = 0; b * kTokensPerCell < shape.num_keys; ++b) shape.holes.push_back(b);
  const AttentionProblem problem(shape);
  ChunkOutput chunk(problem.num_rows(), shape.head_dim);
  AttentionArgs args = problem.chunk_args(1, 0, shape.num_query_tokens);
  chunk.attach(args);
  table().attention(args);
  for (float value : chunk.out) EXPECT_EQ(value, 0.0f);
  for (float value : chunk.sum) EXPECT_EQ(value, 0.0f);
  for (float value : chunk.max) EXPECT_EQ(value, -kInfinity);
  const AttentionOutput output = run(problem);
  for (float value : output.out) EXPECT_EQ(value, 0.0f);
  for (float value : output.log_sum_exp) EXPECT_EQ(value, -kInfinity);
}

// The second chunk starts after the first tokens of this batch: their rows see none of it.
TEST_P(Attention, LeavesAChunkAloneThatLiesAheadOfARow) {
  const AttentionShape shape = {.num_query_tokens = 60, .group_size = 2, .head_dim = 64, .num_keys = 540};
  const AttentionProblem problem(shape);
  ChunkOutput ahead(problem.num_rows(), shape.head_dim);
  AttentionArgs args = problem.chunk_args(1, 0, shape.num_query_tokens);
  ahead.attach(args);
  table().attention(args);
  for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
    const bool sees = problem.first_position() + row / shape.group_size >= kTokensPerChunk;
    EXPECT_EQ(ahead.sum[row] > 0.0f, sees) << "row " << row;
    EXPECT_EQ(ahead.max[row] > -kInfinity, sees) << "row " << row;
  }
}

TEST_P(Attention, SharesOutAllOfTheAttention) {
  const AttentionShape shape = {.num_query_tokens = 33, .group_size = 4, .head_dim = 128, .num_keys = 1200};
  const AttentionProblem problem(shape);
  const AttentionOutput output = run(problem);
  for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
    double total = 0.0;
    for (std::int32_t b = 0; b < problem.num_blocks(); ++b)
      total += output.scores[row * problem.num_blocks() + b];
    EXPECT_NEAR(total, 1.0, 2e-6) << "row " << row;
  }
}

// A page that may be read, and behind it one that must not be.
class GuardedPage {
 public:
  GuardedPage() {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(memory_ + kBytes, kBytes, PROT_NONE), 0);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  ~GuardedPage() { munmap(memory_, 2 * kBytes); }
  // So many bytes that end where the page ends.
  std::byte* last(std::int64_t num_bytes) const { return memory_ + kBytes - num_bytes; }
  const std::byte* begin() const { return memory_; }

 private:
  static constexpr std::int64_t kBytes = 4096;
  std::byte* memory_;
};

TEST_P(Attention, ReadsNothingBehindACellWhateverTheHeadSize) {
  for (std::int32_t head_dim : {2, 8, 22, 40, 62}) {
    for (std::int32_t num_tokens : {1, 16}) {  // 16: as many rows as make keys and values be widened first
      SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << ", tokens " << num_tokens);
      const AttentionShape shape = {
          .num_query_tokens = num_tokens, .group_size = 4, .head_dim = head_dim, .num_keys = 16};
      const AttentionProblem problem(shape);
      const std::int64_t bytes = kv::cell_bytes(KvFormat::kF16, head_dim);
      const GuardedPage page;
      AttentionArgs args = problem.chunk_args(0, 0, num_tokens);
      const kv::KvCell cell = args.keys.cells.find(0);
      std::memcpy(page.last(bytes), cell.data, static_cast<std::size_t>(bytes));
      const kv::KvCellRef ref(page.last(bytes) - page.begin(), KvFormat::kF16);
      const BlockId block{0};
      args.keys.cells = {.blocks = &block, .refs = &ref, .memory = page.begin()};
      ChunkOutput moved(problem.num_rows(), head_dim), expected(problem.num_rows(), head_dim);
      moved.attach(args);
      table().attention(args);
      AttentionArgs original = problem.chunk_args(0, 0, num_tokens);
      expected.attach(original);
      table().attention(original);
      EXPECT_TRUE(same_bits(moved.out.data(), expected.out.data(), moved.out.size()));
    }
  }
}

// The last of num_keys tokens with one head, whose scores are means over the channels.
AttentionArgs one_query_args(const std::vector<float>& query, std::int32_t num_keys,
                             const kv::KvCellMap& cells) {
  const auto head_dim = static_cast<std::int32_t>(query.size());
  return {.q = query.data(),
          .q_stride = head_dim,
          .num_query_tokens = 1,
          .group_size = 1,
          .head_dim = head_dim,
          .first_position = num_keys - 1,
          .keys = {.end = num_keys, .cells = cells},
          .scale = 1.0f / static_cast<float>(head_dim)};
}

// Keys of 0 and 1 in every channel and a query of one number: no code, step or 16-bit integer can be larger.
TEST_P(Attention, OfIntegerCodesHoldsTheLargestSums) {
  const std::int32_t head_dim = kMaxHeadDim;
  const std::vector<float> zeros(head_dim, 0.0f), ones(head_dim, 1.0f);
  std::vector<std::byte> exact(static_cast<std::size_t>(kv::cell_bytes(KvFormat::kF32, head_dim)));
  for (std::int32_t slot = 0; slot < kTokensPerCell; ++slot) {
    ref::write_kv({.k = slot == 0 ? zeros.data() : ones.data(),
                   .v = ones.data(),
                   .head_dim = head_dim,
                   .slot = slot,
                   .format = KvFormat::kF32,
                   .cell = exact.data()});
  }
  for (int i = static_cast<int>(KvFormat::kQ8); i < kv::kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    if (format == KvFormat::kK2pV2) continue;  // its keys meet float queries
    SCOPED_TRACE(kv::name_of(format));
    std::vector<std::byte> cell(static_cast<std::size_t>(kv::cell_bytes(format, head_dim)));
    ref::convert_cell({.head_dim = head_dim,
                       .from = KvFormat::kF32,
                       .to = format,
                       .source = exact.data(),
                       .target = cell.data()});
    const BlockId block{0};
    const kv::KvCellRef ref(0, format);
    for (float sign : {1.0f, -1.0f}) {
      ChunkOutput output(1, head_dim);
      AttentionArgs args = one_query_args(ones, kTokensPerCell,
                                          {.blocks = &block, .refs = &ref, .memory = cell.data()});
      args.scale *= sign;
      output.attach(args);
      table().attention(args);
      ChunkOutput expected(1, head_dim);
      expected.attach(args);
      ref::attention(args);
      EXPECT_NEAR(output.max[0], expected.max[0], 1e-3f);
      EXPECT_NEAR(output.sum[0], expected.sum[0], 1e-2f);
      for (std::int32_t d = 0; d < head_dim; ++d) EXPECT_NEAR(output.out[d], expected.out[d], 1e-2f);
    }
  }
}

// A tile of keys and values of one number, and a query of the same: all weights are alike.
TEST_P(Attention, OfTwelveBitsHoldsTheLargestSums) {
  const std::int32_t head_dim = kMaxHeadDim;
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> query(head_dim, 1.0f), numbers(head_dim, sign);
    std::vector<std::byte> cell(static_cast<std::size_t>(kv::cell_bytes(KvFormat::kQ12, head_dim)));
    for (std::int32_t slot = 0; slot < kTokensPerCell; ++slot) {
      ref::write_kv({.k = numbers.data(),
                     .v = numbers.data(),
                     .head_dim = head_dim,
                     .slot = slot,
                     .format = KvFormat::kQ12,
                     .cell = cell.data()});
    }
    const BlockId blocks[kTokensPerTile / kTokensPerCell] = {};
    const kv::KvCellRef ref(0, KvFormat::kQ12);
    ChunkOutput output(1, head_dim);
    AttentionArgs args = one_query_args(query, kTokensPerTile,
                                        {.blocks = blocks, .refs = &ref, .memory = cell.data()});
    output.attach(args);
    table().attention(args);
    EXPECT_NEAR(output.max[0], sign, 2e-3f);
    EXPECT_NEAR(output.sum[0], kTokensPerTile, 1e-3f);
    for (const float out : output.out) EXPECT_NEAR(out / kTokensPerTile, sign, 2e-3f);
  }
}

}  // namespace
}  // namespace kvasir::kernels::attention_test
