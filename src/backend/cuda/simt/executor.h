// Runs kernels on the host: one block at a time, one fiber for each thread, the bits of a device.
//
// A collective or a barrier is a meeting: a thread that comes early lets others run. Who runs next is drawn from a
// seed, so a kernel whose result depends on the order gives other bits under another one. What the executor finds
// is in bug.h. It cannot see bank conflicts, occupancy, the weak order of memory between blocks (which therefore
// share nothing in a launch), or a driver's limits.
//
// Not thread-safe. The door (simt.h) reaches the executor through executor(), which exists during a launch.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/simt/bug.h"
#include "backend/cuda/simt/device_memory.h"
#include "backend/cuda/simt/fiber_stacks.h"

namespace kvasir::simt {

struct Dim {
  std::uint32_t x = 1, y = 1, z = 1;
};

inline constexpr int kWarpSize = 32;
// The least of what compute capabilities 8.0, 9.0 and 12.0 give a block.
inline constexpr std::int64_t kMaxSharedBytes = 99 << 10;

// A lane's words for a meeting of its warp, and those that it takes from it.
struct Parcel {
  std::uint32_t words[12];
};
// Reads what all lanes brought and writes what they take.
using Meeting = void (*)(const Parcel* brought, Parcel* taken);

class Executor {
 public:
  // `order` seeds who runs when; 0 is the order of numbers.
  explicit Executor(std::uint32_t order = 0);
  ~Executor();

  DeviceMemory& memory() { return memory_; }
  // The first bug met. Later launches do nothing.
  const std::optional<Report>& report() const { return report_; }
  std::uint64_t num_switches() const { return switches_; }

  void launch(Dim grid, std::uint32_t threads, std::int64_t shared_bytes,
              const std::function<void()>& kernel);

  // For the door, by the running thread.
  std::uint32_t thread_index() const { return static_cast<std::uint32_t>(running_); }
  std::uint32_t num_threads() const { return static_cast<std::uint32_t>(threads_.size()); }
  const Dim& block_index() const { return block_index_; }
  const Dim& grid() const { return grid_; }
  std::byte* shared(std::int64_t offset, std::int64_t bytes, Site site);
  void read(const void* address, std::int64_t bytes, void* out, Site site);
  void write(void* address, std::int64_t bytes, const void* in, Site site);
  void sync_block(Site site);
  void sync_warp(Site site);
  Parcel meet(const Parcel& brought, Meeting meeting, Site site);
  void async_copy(void* to, const void* from, std::int64_t bytes, Site site);
  void async_commit();
  void async_wait(int groups_left, Site site);

 private:
  enum class State : std::uint8_t { kReady, kAtBarrier, kAtMeeting, kDone };
  struct Copy {
    std::byte* to;
    std::vector<std::byte> content;
    int group;
  };
  struct Thread {
    boost::context::fiber fiber, scheduler;
    State state = State::kReady;
    Site site;
    Accessor accessor;
    std::vector<Copy> copies;
    int group = 0;  // of the next copies
  };
  struct Warp {
    int first = 0;
    int num_waiting = 0, num_done = 0;
    Site site;       // of those that wait
    int parity = 0;  // of the next meeting; those who leave one may meet the next before others have left
    Parcel brought[2][kWarpSize], taken[2][kWarpSize];
  };
  struct Stop {};  // ends a thread that met a bug

  bool is_launchable(Dim grid, std::uint32_t threads, std::int64_t shared_bytes);
  void run_block(const std::function<void()>& kernel);
  void start_thread(int thread, const std::function<void()>& kernel);
  void make_ready(int thread);
  int take_ready();
  void resume(int thread);
  void wait(State state, Site site);
  void end_thread();
  void find_deadlock();
  void note(Bug bug, const std::string& what, Site site);
  [[noreturn]] void stop(Bug bug, const std::string& what, Site site);
  void check(const std::optional<Fault>& fault, const void* address, std::int64_t bytes, Site site);
  Thread& me() { return threads_[static_cast<std::size_t>(running_)]; }
  Warp& my_warp() { return warps_[static_cast<std::size_t>(running_ / kWarpSize)]; }
  std::uint32_t random();

  DeviceMemory memory_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<int> ready_;
  std::optional<Report> report_;
  Dim grid_, block_index_;
  int running_ = 0;
  int num_at_barrier_ = 0, num_done_ = 0;
  Site barrier_site_;  // of those at the barrier
  std::uint32_t order_;
  std::uint64_t random_state_;
  std::uint32_t block_number_ = 0;
  std::uint64_t switches_ = 0;
};

// The executor of the launch that runs on this thread of the program.
Executor& executor();

}  // namespace kvasir::simt
