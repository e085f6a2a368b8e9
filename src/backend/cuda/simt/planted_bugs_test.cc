// Kernels with one bug each, which the executor must report by its name, and their correct twins, which it must let
// pass in every order.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backend/cuda/simt/simt.h"

namespace kvasir::simt::planted_bugs_test {
namespace {

constexpr std::uint32_t kOrders = 8;

using Kernel = void (*)(const int* in, int* out);

// 64 numbers in, 64 unwritten ones out, 64 threads a block, 256 bytes of shared memory.
struct Trial {
  explicit Trial(std::uint32_t order) : device(order) {}

  template <Kernel kernel>
  void run(std::uint32_t blocks = 1, std::int64_t shared_bytes = 256) {
    std::vector<int> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 1);
    const int* in = device.input(std::span<const int>(numbers));
    int* out = device.output<int>(64);
    launch<kernel>(device, {blocks}, 64, shared_bytes, in, out);
    if (!device.executor().report()) device.copy_out(out, std::span<int>(result));
  }
  Device device;
  std::vector<int> result = std::vector<int>(64);
};

template <Kernel kernel>
void expect(Bug bug, std::uint32_t blocks = 1) {
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Trial run(order);
    run.run<kernel>(blocks);
    const auto& report = run.device.executor().report();
    ASSERT_TRUE(report.has_value()) << "missed: " << name_of(bug) << " in order " << order;
    EXPECT_EQ(report->bug, bug) << report->text;
  }
}

template <Kernel kernel>
std::vector<int> expect_clean(std::uint32_t blocks = 1) {
  std::vector<int> first;
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Trial run(order);
    run.run<kernel>(blocks);
    EXPECT_EQ(run.device.error(), "");
    if (order == 0) first = run.result;
    EXPECT_EQ(run.result, first);
  }
  return first;
}

void reverse(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  store(s + thread_index(), load(in + thread_index()));
  sync_block();
  store(out + thread_index(), load(s + 63 - thread_index()));
}
TEST(PlantedBugs, ACorrectKernelPassesInEveryOrder) {
  const std::vector<int> result = expect_clean<reverse>();
  EXPECT_EQ(result.front(), 64);
  EXPECT_EQ(result.back(), 1);
}

void reverse_without_barrier(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  store(s + thread_index(), load(in + thread_index()));
  store(out + thread_index(), load(s + 63 - thread_index()));
}
TEST(PlantedBugs, AMissingBarrierIsARaceOrReadsWhatNobodyWrote) {
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Trial run(order);
    run.run<reverse_without_barrier>();
    const auto& report = run.device.executor().report();
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->bug == Bug::kRace || report->bug == Bug::kUninitialised) << report->text;
  }
}

void rewrite_without_barrier(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  store(s + thread_index(), load(in + thread_index()));
  sync_block();
  const int other = load(s + (thread_index() + 1) % 64);
  store(s + thread_index(), other);  // the neighbour may not have read yet
  store(out + thread_index(), other);
}
TEST(PlantedBugs, AWriteBesideAReadIsARace) { expect<rewrite_without_barrier>(Bug::kRace); }

void read_by_all_then_write(const int* in, int* out) {
  int* s = shared<int>(0, 1);
  if (thread_index() == 0) store(s, load(in));
  sync_block();
  const int all = load(s);
  if (thread_index() == 5) store(s, all + 1);
  store(out + thread_index(), all);
}
TEST(PlantedBugs, AWriteBesideManyReadersIsARace) { expect<read_by_all_then_write>(Bug::kRace); }

void same_place(const int* in, int* out) {
  if (thread_index() < 2) store(out, load(in));
}
TEST(PlantedBugs, TwoWritersOfOnePlaceAreARaceEvenWithOneValue) { expect<same_place>(Bug::kRace); }

void blocks_share(const int* in, int* out) {
  if (thread_index() == 0) store(out, load(in) + static_cast<int>(block_index().x));
}
TEST(PlantedBugs, BlocksThatWriteOnePlaceAreARace) {
  expect<blocks_share>(Bug::kRace, 2);
  expect_clean<blocks_share>(1);
}

void within_warp(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  store(s + thread_index(), load(in + thread_index()));
  sync_warp();
  store(out + thread_index(), load(s + (thread_index() ^ 1)));
}
void across_warps(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  store(s + thread_index(), load(in + thread_index()));
  sync_warp();
  store(out + thread_index(), load(s + (thread_index() ^ 32)));
}
TEST(PlantedBugs, AWarpsBarrierOrdersThatWarpAlone) {
  expect_clean<within_warp>();
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Trial run(order);
    run.run<across_warps>();
    ASSERT_TRUE(run.device.executor().report().has_value());
    const Bug bug = run.device.executor().report()->bug;
    EXPECT_TRUE(bug == Bug::kRace || bug == Bug::kUninitialised);
  }
}

void divergent_barrier(const int*, int*) {
  if (thread_index() % 2 == 0) sync_block();
  shuffle_xor(1, 1);
}
TEST(PlantedBugs, ABarrierThatSomeLanesOfAWarpPassByIsFound) {
  expect<divergent_barrier>(Bug::kDivergentBarrier);
}

void two_barriers(const int*, int*) {
  if (thread_index() < 32)
    sync_block();
  else
    sync_block();
}
TEST(PlantedBugs, TwoBarriersOnOneLineAreTwo) { expect<two_barriers>(Bug::kDivergentBarrier); }

void early_exit_before_barrier(const int*, int*) {
  if (thread_index() >= 40) return;
  sync_block();
}
TEST(PlantedBugs, AThreadThatEndsBeforeABarrierIsFound) {
  expect<early_exit_before_barrier>(Bug::kEarlyExit);
}

void early_exit_before_shuffle(const int*, int*) {
  if (lane_index() == 7) return;
  shuffle_xor(1.0f, 1);
}
TEST(PlantedBugs, ALaneThatEndsBeforeACollectiveIsFound) {
  expect<early_exit_before_shuffle>(Bug::kEarlyExit);
}

void early_exit_of_a_warp(const int* in, int* out) {
  if (warp_index() == 1) return;
  store(out + thread_index(), shuffle_xor(load(in + thread_index()), 1));
}
TEST(PlantedBugs, AWholeWarpMayEndWhereNobodyWaitsForIt) {
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Trial run(order);
    run.run<early_exit_of_a_warp>();
    EXPECT_EQ(run.device.error(), "");
  }
}

void two_sites(const int*, int*) {
  float v = 1;
  if (lane_index() < 16)
    v = shuffle_xor(v, 1);
  else
    v = shuffle_xor(v, 2);
}
TEST(PlantedBugs, LanesAtTwoCollectivesOnOneLineAreFound) { expect<two_sites>(Bug::kDivergentCollective); }

void collective_of_some(const int*, int*) {
  if (lane_index() < 16) shuffle_xor(1, 1);
  sync_warp();
}
TEST(PlantedBugs, ACollectiveOfSomeLanesIsFound) { expect<collective_of_some>(Bug::kDivergentCollective); }

void collective_beside_barrier(const int*, int*) {
  if (lane_index() < 16) {
    shuffle_xor(1, 1);
  } else {
    sync_block();
  }
}
TEST(PlantedBugs, ACollectiveBesideABarrierIsFound) {
  expect<collective_beside_barrier>(Bug::kDivergentBarrier);
}

void misaligned(const int* in, int* out) {
  if (thread_index() == 0) store(out, static_cast<int>(load16(in + 1).x));
}
TEST(PlantedBugs, AMisalignedWideLoadIsFound) { expect<misaligned>(Bug::kMisaligned); }

void misaligned_shared(const int*, int*) { store(reinterpret_cast<int*>(shared<char>(2, 4)), 1); }
TEST(PlantedBugs, AMisalignedStoreIsFound) { expect<misaligned_shared>(Bug::kMisaligned); }

void uninitialised_shared(const int*, int* out) {
  const int* s = shared<int>(0, 64);
  store(out + thread_index(), load(s + thread_index()));
}
TEST(PlantedBugs, SharedMemoryThatNobodyWroteIsFound) { expect<uninitialised_shared>(Bug::kUninitialised); }

void left_by_another_block(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  if (block_index().x == 0) store(s + thread_index(), load(in + thread_index()));
  sync_block();
  const int value = load(s + thread_index());
  if (block_index().x == 0) store(out + thread_index(), value);
}
TEST(PlantedBugs, SharedMemoryOfAnotherBlockIsNotInitialised) {
  expect<left_by_another_block>(Bug::kUninitialised, 2);
}

void uninitialised_output(const int*, int* out) {
  store(out + thread_index(), load(out + thread_index()) + 1);
}
TEST(PlantedBugs, AnOutputThatNobodyWroteIsFound) { expect<uninitialised_output>(Bug::kUninitialised); }

void reads_past_the_end(const int* in, int* out) {
  store(out + thread_index(), load(in + thread_index() + 1));
}
TEST(PlantedBugs, AReadPastABufferIsFound) { expect<reads_past_the_end>(Bug::kOutOfBounds); }

void reads_before_the_start(const int* in, int* out) {
  store(out + thread_index(), load(in + thread_index() - 1));
}
TEST(PlantedBugs, AReadBeforeABufferIsFound) { expect<reads_before_the_start>(Bug::kOutOfBounds); }

void writes_far_away(const int*, int* out) { store(out + (1 << 20), 1); }
TEST(PlantedBugs, AWriteFarBehindABufferIsFound) { expect<writes_far_away>(Bug::kOutOfBounds); }

void past_shared(const int*, int*) { store(shared<int>(0, 64) + 64 + thread_index(), 1); }
TEST(PlantedBugs, AWritePastSharedMemoryIsFound) { expect<past_shared>(Bug::kOutOfBounds); }

void too_much_shared(const int*, int*) { shared<int>(0, 65); }
TEST(PlantedBugs, MoreSharedMemoryThanTheLaunchGaveIsFound) { expect<too_much_shared>(Bug::kOutOfBounds); }

void through_a_null_pointer(const int*, int* out) { store(out, load(static_cast<const int*>(nullptr))); }
TEST(PlantedBugs, ANullPointerIsFound) { expect<through_a_null_pointer>(Bug::kOutOfBounds); }

void writes_input(const int* in, int*) { store(const_cast<int*>(in) + thread_index(), 1); }
TEST(PlantedBugs, AWriteToAnInputIsFound) { expect<writes_input>(Bug::kReadOnly); }

void copy_tile(const int* in, int* s) {
  if (thread_index() < 16) async_copy16(s + 4 * thread_index(), in + 4 * thread_index());
  async_commit();
}
void async_in_time(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  copy_tile(in, s);
  async_wait<0>();
  sync_block();
  store(out + thread_index(), load(s + 63 - thread_index()));
}
void async_without_wait(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  copy_tile(in, s);
  sync_block();
  store(out + thread_index(), load(s + 63 - thread_index()));
  async_wait<0>();
}
void async_wait_for_an_older_group(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  copy_tile(in, s);
  async_wait<1>();  // all groups but the one that matters
  sync_block();
  store(out + thread_index(), load(s + 63 - thread_index()));
}
void async_without_barrier(const int* in, int* out) {
  int* s = shared<int>(0, 64);
  copy_tile(in, s);
  async_wait<0>();
  store(out + thread_index(), load(s + 63 - thread_index()));
}
void async_never_awaited(const int* in, int*) { copy_tile(in, shared<int>(0, 64)); }
TEST(PlantedBugs, AsynchronousDataUsedBeforeItsWaitIsFound) {
  EXPECT_EQ(expect_clean<async_in_time>().front(), 64);
  expect<async_without_wait>(Bug::kAsyncTooEarly);
  expect<async_wait_for_an_older_group>(Bug::kAsyncTooEarly);
  expect<async_never_awaited>(Bug::kAsyncTooEarly);
}
TEST(PlantedBugs, AsynchronousDataUsedWithoutABarrierIsFound) {
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Trial run(order);
    run.run<async_without_barrier>();
    ASSERT_TRUE(run.device.executor().report().has_value());
    const Bug bug = run.device.executor().report()->bug;
    EXPECT_TRUE(bug == Bug::kRace || bug == Bug::kAsyncTooEarly || bug == Bug::kUninitialised);
  }
}

void nothing(const int*, int*) {}
TEST(PlantedBugs, LaunchesLargerThanADeviceTakesAreFound) {
  const auto bug_of = [](Dim grid, std::uint32_t threads, std::int64_t shared_bytes) {
    Device device;
    launch<nothing>(device, grid, threads, shared_bytes, static_cast<const int*>(nullptr),
                    static_cast<int*>(nullptr));
    return device.executor().report() ? std::optional(device.executor().report()->bug) : std::nullopt;
  };
  EXPECT_EQ(bug_of({1, 1, 1}, 1024, 99 << 10), std::nullopt);
  EXPECT_EQ(bug_of({1, 65536, 1}, 32, 0), Bug::kLaunchLimit);
  EXPECT_EQ(bug_of({1, 1, 65536}, 32, 0), Bug::kLaunchLimit);
  EXPECT_EQ(bug_of({0, 1, 1}, 32, 0), Bug::kLaunchLimit);
  EXPECT_EQ(bug_of({1, 1, 1}, 1056, 0), Bug::kLaunchLimit);
  EXPECT_EQ(bug_of({1, 1, 1}, 40, 0), Bug::kLaunchLimit);
  EXPECT_EQ(bug_of({1, 1, 1}, 32, (99 << 10) + 1), Bug::kLaunchLimit);
}

void round_the_door(const int* in, int* out) { store(out, *in); }
TEST(PlantedBugsDeathTest, AKernelThatGoesRoundTheDoorStops) {
  EXPECT_DEATH(Trial(0).run<round_the_door>(), "");
}

void adds_in_order_of_arrival(const int*, int* out) { store(out, load(out) * 3 + thread_index()); }
TEST(PlantedBugs, AnUnorderedSumIsARace) {
  for (std::uint32_t order = 0; order < kOrders; ++order) {
    Device device(order);
    int* out = device.in_out(std::span<const int>(std::vector<int>{1}));
    launch<adds_in_order_of_arrival>(device, {1}, 32, 0, static_cast<const int*>(nullptr), out);
    ASSERT_TRUE(device.executor().report().has_value());
    EXPECT_EQ(device.executor().report()->bug, Bug::kRace);
  }
}

}  // namespace
}  // namespace kvasir::simt::planted_bugs_test
