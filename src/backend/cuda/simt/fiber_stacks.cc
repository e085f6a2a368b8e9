#include "backend/cuda/simt/fiber_stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

namespace kvasir::simt {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

FiberStacks::~FiberStacks() {
  for (void* end : free_) munmap(static_cast<char*>(end) - kBytes - page_bytes(), kBytes + page_bytes());
}

FiberStacks& FiberStacks::of_this_thread() {
  thread_local FiberStacks stacks;
  return stacks;
}

boost::context::stack_context FiberStacks::take() {
  boost::context::stack_context stack;
  stack.size = kBytes;
  if (!free_.empty()) {
    stack.sp = free_.back();
    free_.pop_back();
    return stack;
  }
  const std::size_t guard = page_bytes();
  void* const memory = mmap(nullptr, kBytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                            0);
  CHECK(memory != MAP_FAILED && mprotect(memory, guard, PROT_NONE) == 0);
  stack.sp = static_cast<char*>(memory) + guard + kBytes;
  return stack;
}

}  // namespace kvasir::simt
