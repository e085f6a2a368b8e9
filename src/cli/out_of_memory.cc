#include "cli/out_of_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/address_space.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

// A small model's start takes 120 KiB. The system gives 132 KiB before it has to grow the stack.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;
// A request that fails may want a buffer of megabytes, and a thread's stack takes 8 MiB.
constexpr std::int64_t kLittleBytes = 16 << 20;
constexpr std::size_t kProbeBytes = std::size_t{1} << 20;

// In signal handlers: no allocation, no lock, nothing of stdio.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kLine = "kvasir: out of memory (see --memory, ulimit -v)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  ::_exit(kExitMachine);
}

bool is_memory_used_up() {
  if (const auto bytes = free_address_bytes()) return *bytes < kLittleBytes;
  void* const probe = ::mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return true;
  ::munmap(probe, kProbeBytes);
  return false;
}

// There is no handler any more when it returns.
void end_or_raise(int signal) {
  if (is_memory_used_up()) end_without_memory();
  ::raise(signal);
}

// A sanitizer's handler stays.
void handle(int signal) {
  struct sigaction action = {};
  if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = end_or_raise;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  ::sigaction(signal, &action, nullptr);
}

void end_or_abort() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) end_without_memory();  // a thread's stack
  } catch (...) {
    // No lack of memory.
  }
  std::abort();
}

// One byte far down makes the system map all above it.
[[gnu::noinline]] void grow_stack() {
  char* const here = static_cast<char*>(__builtin_frame_address(0));
  *static_cast<volatile char*>(here - kStackBytes) = 0;
}

}  // namespace

bool prepare_for_little_memory() {
  const auto bytes = free_address_bytes();
  if (bytes && *bytes < static_cast<std::int64_t>(2 * kStackBytes)) return false;
  grow_stack();
  static std::array<std::byte, std::size_t{64} << 10> handler_stack;  // for a main stack that cannot grow
  stack_t alternate{};
  alternate.ss_sp = handler_stack.data();
  alternate.ss_size = handler_stack.size();
  ::sigaltstack(&alternate, nullptr);
  handle(SIGABRT);
  handle(SIGSEGV);
  std::set_terminate(end_or_abort);
  return true;
}

}  // namespace kvasir::cli
