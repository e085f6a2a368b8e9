#include "backend/guarded/guarded_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "backend/registry.h"
#include "base/thread_pool.h"

namespace kvasir::backend::guarded_backend_test {
namespace {

constexpr std::array<float, 4> kFloats = {1.0f, -2.0f, 3.0f, 4.0f};

std::unique_ptr<Backend> guarded(ThreadPool& pool) { return make_backend("guarded", "ref", pool).value(); }

TEST(GuardedBackend, GivesRowsToTheHostThatAskForThem) {
  ThreadPool pool(2);
  const auto backend = guarded(pool);
  const Rows rows = backend->make_rows(3, 4).value();
  backend->write_row(kFloats, rows, 2);
  const std::span<float> row = backend->host_row(rows, 2);
  EXPECT_TRUE(std::ranges::equal(row, kFloats));
  backend->scale_and_cap(row, 2.0f, 0.0f);
  EXPECT_EQ(row[1], -4.0f);
  EXPECT_EQ(backend->host_row(rows, 2)[1], -2.0f) << "a change stays with the host";
}

TEST(GuardedBackend, ComputesAsTheProcessorDoes) {
  ThreadPool pool(2);
  const auto cpu = make_cpu_backend("ref", pool).value();
  const auto backend = guarded(pool);
  const BatchSequence slice{.num_rows = 1, .num_wanted_rows = 1};
  const TokenId token = 0;
  const BatchInput batch{.token_ids = {&token, 1}, .sequences = {&slice, 1}, .runs_all_layers = false};
  const std::vector<float> weight(4, 0.5f);
  std::vector<std::vector<float>> results;
  for (Backend* each : {cpu.get(), backend.get()}) {
    const Rows rows = each->make_rows(1, 4).value();
    each->plan(batch, {});
    each->write_row(kFloats, rows, 0);
    each->norm_in_place(rows, {.kind = NormKind::kRms, .weight = weight, .eps = 1e-5f});
    const std::span<const float> row = each->host_row(rows, 0);
    results.emplace_back(row.begin(), row.end());
  }
  EXPECT_EQ(results[0], results[1]);
}

using GuardedBackendDeathTest = ::testing::Test;

TEST(GuardedBackendDeathTest, EndsWhoeverTouchesItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ThreadPool pool(1);
  const auto backend = guarded(pool);
  const Rows rows = backend->make_rows(3, 4).value();
  AlignedBuffer memory = backend->make_cell_memory(1 << 20).value();
  backend->write_row(kFloats, rows, 0);
  EXPECT_DEATH(rows.data[0] = 1.0f, "");
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile float*>(rows.data)), "");
  EXPECT_DEATH(memory.data()[4096] = std::byte{1}, "");
}

TEST(MakeBackend, NamesTheDevicesThatThereAre) {
  ThreadPool pool(1);
  const auto none = make_backend("cuda:0", "", pool);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind, ErrorKind::kMachine);
  const auto wrong = make_backend("abacus", "", pool);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(wrong.error().message, "device: one of cpu, guarded, not 'abacus'");
}

}  // namespace
}  // namespace kvasir::backend::guarded_backend_test
