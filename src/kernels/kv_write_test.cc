// Tokens rounded to 12 bits: the bytes are the reference's, near the numbers, and no others are touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels/every_isa.h"
#include "kernels/ref/kv_cell.h"
#include "kernels/ref/kernels.h"
#include "kernels/table.h"

namespace kvasir::kernels::kv_write_test {
namespace {

using Cell = std::vector<std::byte>;

class KvWrite12 : public EveryIsa {
 protected:
  bool write(const std::vector<float>& k, const std::vector<float>& v, std::int32_t slot, Cell& cell) const {
    return table().write_kv(args(k, v, slot, cell));
  }
  static KvWriteArgs args(const std::vector<float>& k, const std::vector<float>& v, std::int32_t slot,
                          Cell& cell) {
    return {.k = k.data(),
            .v = v.data(),
            .head_dim = static_cast<std::int32_t>(k.size()),
            .slot = slot,
            .format = KvFormat::kQ12,
            .cell = cell.data()};
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, KvWrite12, testing::ValuesIn(host_tables()), isa_name);

Cell poisoned_cell(std::int32_t head_dim) {
  return Cell(static_cast<std::size_t>(kv::cell_bytes(KvFormat::kQ12, head_dim)), std::byte{0xff});
}

// One number far above the others, or none.
std::vector<float> random_row(std::int32_t head_dim, float size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<std::size_t>(head_dim));
  for (float& x : row) x = size * normal(random);
  if (random() % 2 == 0) row[random() % row.size()] *= 30.0f;
  return row;
}

float number(const Cell& cell, bool of_keys, std::int32_t head_dim, std::int32_t token, std::int32_t d) {
  if (of_keys) return ref::key_number(kv::KvCode::k12, cell.data(), head_dim, token, d);
  return ref::value_number(kv::KvCode::k12, cell.data() + kv::key_bytes(KvFormat::kQ12, head_dim), head_dim,
                           token, d);
}

TEST_P(KvWrite12, WritesTheReferencesBytesAndNoOthers) {
  std::mt19937 random(5);
  for (const std::int32_t head_dim : {64, 128, 192, 256, 512}) {
    for (const float size : {0.0f, 1e-9f, 1e-6f, 3e-4f, 1.0f, 5e3f, 1e6f}) {
      SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << ", size " << size);
      Cell cell = poisoned_cell(head_dim), expected = cell;
      std::vector<std::int32_t> slots(kTokensPerCell);
      for (std::int32_t i = 0; i < kTokensPerCell; ++i) slots[static_cast<std::size_t>(i)] = i;
      std::shuffle(slots.begin(), slots.end(), random);
      for (const std::int32_t slot : slots) {
        const std::vector<float> k = random_row(head_dim, size, random),
                                 v = random_row(head_dim, size, random);
        EXPECT_TRUE(write(k, v, slot, cell));
        EXPECT_TRUE(ref::write_kv(args(k, v, slot, expected)));
        ASSERT_EQ(cell, expected) << "slot " << slot;
      }
    }
  }
}

TEST_P(KvWrite12, StaysWithinHalfAStepOfEachNumber) {
  std::mt19937 random(6);
  const std::int32_t head_dim = 128, slot = 9;
  for (const float size : {1e-6f, 1e-4f, 0.01f, 1.0f, 1e3f, 1e6f}) {
    for (int i = 0; i < 50; ++i) {
      Cell cell = poisoned_cell(head_dim);
      const std::vector<float> k = random_row(head_dim, size, random), v = random_row(head_dim, size, random);
      ASSERT_TRUE(write(k, v, slot, cell));
      for (const bool of_keys : {true, false}) {
        const std::vector<float>& row = of_keys ? k : v;
        float largest = 0.0f;
        for (float x : row) largest = std::max(largest, std::abs(x));
        const float half_step = 0.5f * (largest / 2047.0f * 1.0015f + 0x1p-24f);
        for (std::int32_t d = 0; d < head_dim; ++d) {
          ASSERT_NEAR(number(cell, of_keys, head_dim, slot, d), row[static_cast<std::size_t>(d)],
                      half_step * 1.0001f);
        }
      }
    }
  }
}

TEST_P(KvWrite12, TellsOfNumbersBeyondItAndWritesZerosInstead) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::int32_t head_dim = 64, slot = 3;
  const std::vector<float> ones(head_dim, 1.0f);
  for (const float beyond : {1.4e8f, -1.4e8f, kInfinity, -kInfinity, std::nanf("")}) {
    for (const std::size_t at : {0u, 33u, 63u}) {
      std::vector<float> row = ones;
      row[at] = beyond;
      for (const bool of_keys : {true, false}) {
        SCOPED_TRACE(testing::Message() << beyond << " at " << at << " of " << (of_keys ? "keys" : "values"));
        Cell cell = poisoned_cell(head_dim);
        EXPECT_FALSE(of_keys ? write(row, ones, slot, cell) : write(ones, row, slot, cell));
        for (std::int32_t d = 0; d < head_dim; ++d) {
          EXPECT_EQ(number(cell, of_keys, head_dim, slot, d), 0.0f);
          EXPECT_NEAR(number(cell, !of_keys, head_dim, slot, d), 1.0f, 1e-3f);
        }
      }
    }
  }
  std::vector<float> largest = ones;
  largest[5] = 1.2e8f;
  Cell cell = poisoned_cell(head_dim);
  EXPECT_TRUE(write(largest, largest, slot, cell));
  EXPECT_NEAR(number(cell, true, head_dim, slot, 5), 1.2e8f, 1e5f);
}

// A step's tokens are shared out to threads one by one.
TEST_P(KvWrite12, OfTokensOfOneCellMayRunAtOnce) {
  std::mt19937 random(7);
  const std::int32_t head_dim = 64;
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<float>> rows;
    for (int i = 0; i < 2 * kTokensPerCell; ++i) rows.push_back(random_row(head_dim, 1.0f, random));
    Cell cell = poisoned_cell(head_dim), expected = cell;
    const auto write_some = [&](std::int32_t first) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        for (std::int32_t slot = first; slot < kTokensPerCell; slot += 2) {
          write(rows[static_cast<std::size_t>(2 * slot)], rows[static_cast<std::size_t>(2 * slot + 1)], slot,
                cell);
        }
      }
    };
    std::thread odd(write_some, 1);
    write_some(0);
    odd.join();
    for (std::int32_t slot = 0; slot < kTokensPerCell; ++slot) {
      ref::write_kv(args(rows[static_cast<std::size_t>(2 * slot)],
                         rows[static_cast<std::size_t>(2 * slot + 1)], slot, expected));
    }
    ASSERT_EQ(cell, expected);
  }
}

}  // namespace
}  // namespace kvasir::kernels::kv_write_test
