#include "backend/cuda/simt/executor.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace kvasir::simt {
namespace {

thread_local Executor* current = nullptr;

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kMaxGridX = 0x7fffffff;
constexpr std::uint32_t kMaxGridYZ = 65535;

std::string place(Site site) {
  const std::string file = site.file;
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(site.line) + ":" +
         std::to_string(site.column);
}

}  // namespace

Executor& executor() {
  CHECK(current != nullptr);
  return *current;
}

Executor::Executor(std::uint32_t order) : order_(order), random_state_(0x9e3779b97f4a7c15u * (order + 1)) {}
Executor::~Executor() = default;

std::uint32_t Executor::random() {
  random_state_ ^= random_state_ << 13;
  random_state_ ^= random_state_ >> 7;
  random_state_ ^= random_state_ << 17;
  return static_cast<std::uint32_t>(random_state_ >> 32);
}

void Executor::note(Bug bug, const std::string& what, Site site) {
  if (report_) return;
  std::string text = std::string(name_of(bug)) + " at " + place(site) + ", block " +
                     std::to_string(block_index_.x);
  if (grid_.y > 1 || grid_.z > 1)
    text += "," + std::to_string(block_index_.y) + "," + std::to_string(block_index_.z);
  report_ = Report{bug, text + ", thread " + std::to_string(running_) + ": " + what};
}

void Executor::stop(Bug bug, const std::string& what, Site site) {
  note(bug, what, site);
  throw Stop{};
}

bool Executor::is_launchable(Dim grid, std::uint32_t threads, std::int64_t shared_bytes) {
  std::string what;
  if (threads == 0 || threads > kMaxThreads || threads % kWarpSize != 0) {
    what = std::to_string(threads) + " threads";
  } else if (grid.x == 0 || grid.x > kMaxGridX || grid.y == 0 || grid.y > kMaxGridYZ || grid.z == 0 ||
             grid.z > kMaxGridYZ) {
    what = "a grid of " + std::to_string(grid.x) + "," + std::to_string(grid.y) + "," +
           std::to_string(grid.z);
  } else if (shared_bytes > kMaxSharedBytes) {
    what = std::to_string(shared_bytes) + " bytes of shared memory";
  }
  if (!what.empty()) note(Bug::kLaunchLimit, what, {});
  return what.empty();
}

void Executor::launch(Dim grid, std::uint32_t threads, std::int64_t shared_bytes,
                      const std::function<void()>& kernel) {
  if (report_ || !is_launchable(grid, threads, shared_bytes)) return;
  Executor* const outer = std::exchange(current, this);
  grid_ = grid;
  memory_.begin_launch(block_number_ + 1);
  threads_.resize(threads);
  warps_.resize(threads / kWarpSize);
  std::vector<std::uint64_t> blocks(std::uint64_t{grid.x} * grid.y * grid.z);
  std::iota(blocks.begin(), blocks.end(), 0);
  for (std::size_t i = blocks.size(); order_ > 0 && i > 1; --i)
    std::swap(blocks[i - 1], blocks[random() % i]);
  for (const std::uint64_t block : blocks) {
    block_index_ = {static_cast<std::uint32_t>(block % grid.x),
                    static_cast<std::uint32_t>(block / grid.x % grid.y),
                    static_cast<std::uint32_t>(block / grid.x / grid.y)};
    ++block_number_;
    memory_.begin_block(shared_bytes);
    run_block(kernel);
    if (report_) break;
  }
  current = outer;
}

void Executor::start_thread(int thread, const std::function<void()>& kernel) {
  Thread& of = threads_[static_cast<std::size_t>(thread)];
  of.state = State::kReady;
  of.accessor = {.block = block_number_, .thread = static_cast<std::uint16_t>(thread)};
  of.copies.clear();
  of.group = 0;
  of.fiber = boost::context::fiber(std::allocator_arg, PooledStack(FiberStacks::of_this_thread()),
                                   [this, &kernel](boost::context::fiber&& from) {
                                     me().scheduler = std::move(from);
                                     try {
                                       kernel();
                                       end_thread();
                                     } catch (const Stop&) {
                                     }
                                     return std::move(me().scheduler);
                                   });
}

void Executor::run_block(const std::function<void()>& kernel) {
  num_at_barrier_ = num_done_ = 0;
  ready_.clear();
  for (int i = 0; i < static_cast<int>(warps_.size()); ++i) {
    warps_[static_cast<std::size_t>(i)].first = i * kWarpSize;
    warps_[static_cast<std::size_t>(i)].num_waiting = warps_[static_cast<std::size_t>(i)].num_done = 0;
  }
  for (int i = static_cast<int>(threads_.size()) - 1; i >= 0; --i) {
    start_thread(i, kernel);
    ready_.push_back(i);
  }
  while (!ready_.empty() && !report_) resume(take_ready());
  if (!report_ && num_done_ < static_cast<int>(threads_.size())) find_deadlock();
  for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
    running_ = i;  // a thread that is ended here unwinds as itself
    threads_[static_cast<std::size_t>(i)].fiber = {};
  }
}

void Executor::make_ready(int thread) {
  threads_[static_cast<std::size_t>(thread)].state = State::kReady;
  ready_.push_back(thread);
}

int Executor::take_ready() {
  if (order_ > 0) std::swap(ready_.back(), ready_[random() % ready_.size()]);
  const int thread = ready_.back();
  ready_.pop_back();
  return thread;
}

void Executor::resume(int thread) {
  running_ = thread;
  ++switches_;
  Thread& of = threads_[static_cast<std::size_t>(thread)];
  of.fiber = std::move(of.fiber).resume();
}

void Executor::wait(State state, Site site) {
  const int thread = running_;
  Thread& of = me();
  of.state = state;
  of.site = site;
  of.scheduler = std::move(of.scheduler).resume();
  running_ = thread;
}

// The ends of threads and those that wait for them meet in either order.
void Executor::end_thread() {
  Thread& of = me();
  of.state = State::kDone;
  ++num_done_;
  ++my_warp().num_done;
  if (!of.copies.empty()) note(Bug::kAsyncTooEarly, "the thread ended before the wait", of.site);
  if (my_warp().num_waiting > 0) note(Bug::kEarlyExit, "others of its warp are at a collective", of.site);
  if (num_at_barrier_ > 0) note(Bug::kEarlyExit, "others are at a barrier", of.site);
}

void Executor::find_deadlock() {
  for (const bool wants_barrier : {true, false}) {
    for (const Thread& each : threads_) {
      if (each.state != (wants_barrier ? State::kAtBarrier : State::kAtMeeting)) continue;
      running_ = each.accessor.thread;
      return note(wants_barrier ? Bug::kDivergentBarrier : Bug::kDivergentCollective, "not all threads come",
                  each.site);
    }
  }
}

void Executor::sync_block(Site site) {
  if (num_done_ > 0) stop(Bug::kEarlyExit, "threads have ended that a barrier waits for", site);
  if (num_at_barrier_ > 0 && !(barrier_site_ == site)) {
    stop(Bug::kDivergentBarrier, "others are at the one at " + place(barrier_site_), site);
  }
  barrier_site_ = site;
  if (++num_at_barrier_ < static_cast<int>(threads_.size())) return wait(State::kAtBarrier, site);
  num_at_barrier_ = 0;
  for (int i = static_cast<int>(threads_.size()) - 1; i >= 0; --i) {
    ++threads_[static_cast<std::size_t>(i)].accessor.block_epoch;
    if (i != running_) make_ready(i);
  }
}

Parcel Executor::meet(const Parcel& brought, Meeting meeting, Site site) {
  Warp& warp = my_warp();
  if (warp.num_done > 0) stop(Bug::kEarlyExit, "lanes have ended that a collective waits for", site);
  if (warp.num_waiting > 0 && !(warp.site == site)) {
    stop(Bug::kDivergentCollective, "others are at the one at " + place(warp.site), site);
  }
  warp.site = site;
  const int lane = running_ - warp.first, parity = warp.parity;
  warp.brought[parity][lane] = brought;
  if (++warp.num_waiting < kWarpSize) {
    wait(State::kAtMeeting, site);
  } else {
    meeting(warp.brought[parity], warp.taken[parity]);
    warp.num_waiting = 0;
    warp.parity ^= 1;
    for (int i = warp.first + kWarpSize - 1; i >= warp.first; --i) {
      if (i != running_) make_ready(i);
    }
  }
  return warp.taken[parity][lane];
}

void Executor::sync_warp(Site site) {
  meet(
      {}, [](const Parcel*, Parcel*) {}, site);
  ++me().accessor.warp_epoch;
}

std::byte* Executor::shared(std::int64_t offset, std::int64_t bytes, Site site) {
  std::byte* const address = memory_.shared() + offset;
  if (bytes > 0 && !memory_.has_shared(offset, bytes)) stop(Bug::kOutOfBounds, "beyond shared memory", site);
  return address;
}

void Executor::check(const std::optional<Fault>& fault, const void* address, std::int64_t bytes, Site site) {
  if (!fault) return;
  const std::int64_t offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) &
                                                        0xfffffffffu) -
                              (std::int64_t{1} << 35);
  stop(fault->bug, std::to_string(bytes) + " bytes at offset " + std::to_string(offset) + ", " + fault->what,
       site);
}

void Executor::read(const void* address, std::int64_t bytes, void* out, Site site) {
  check(memory_.read(me().accessor, static_cast<const std::byte*>(address), bytes, out), address, bytes,
        site);
}

void Executor::write(void* address, std::int64_t bytes, const void* in, Site site) {
  check(memory_.write(me().accessor, static_cast<std::byte*>(address), bytes, in), address, bytes, site);
}

void Executor::async_copy(void* to, const void* from, std::int64_t bytes, Site site) {
  Copy copy{static_cast<std::byte*>(to), std::vector<std::byte>(static_cast<std::size_t>(bytes)), me().group};
  read(from, bytes, copy.content.data(), site);
  check(memory_.announce(me().accessor, copy.to, bytes), to, bytes, site);
  me().site = site;
  me().copies.push_back(std::move(copy));
}

void Executor::async_commit() { ++me().group; }

void Executor::async_wait(int groups_left, Site site) {
  Thread& of = me();
  const auto is_over = [&](const Copy& copy) { return copy.group < of.group - groups_left; };
  for (const Copy& copy : of.copies) {
    if (!is_over(copy)) continue;
    const auto bytes = static_cast<std::int64_t>(copy.content.size());
    check(memory_.land(of.accessor, copy.to, bytes, copy.content.data()), copy.to, bytes, site);
  }
  std::erase_if(of.copies, is_over);
}

}  // namespace kvasir::simt
