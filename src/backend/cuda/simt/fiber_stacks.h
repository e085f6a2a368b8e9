// Stacks of fibers, kept for the next fibers. Below each lies a page that nobody may touch.
#pragma once

#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <vector>

namespace kvasir::simt {

// Not thread-safe: each thread of the program has its own.
class FiberStacks {
 public:
  static constexpr std::size_t kBytes = 64 << 10;

  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();

  static FiberStacks& of_this_thread();

  boost::context::stack_context take();
  void give_back(const boost::context::stack_context& stack) { free_.push_back(stack.sp); }

 private:
  std::vector<void*> free_;  // their upper ends
};

// Boost.Context takes its stacks from here.
class PooledStack {
 public:
  explicit PooledStack(FiberStacks& stacks) : stacks_(&stacks) {}
  boost::context::stack_context allocate() { return stacks_->take(); }
  void deallocate(boost::context::stack_context& stack) { stacks_->give_back(stack); }

 private:
  FiberStacks* stacks_;
};

}  // namespace kvasir::simt
