#include "base/process_memory.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "base/text_file.h"

namespace kvasir {
namespace {

// A "VmRSS:  123 kB" line of /proc/self/status in bytes; 0 when it is not there.
std::int64_t status_bytes(const std::string& name) {
  std::istringstream status(read_text_file("/proc/self/status").value_or(""));
  std::string word;
  std::int64_t kibibytes = 0;
  while (status >> word) {
    if (word == name && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t rss_bytes() { return status_bytes("VmRSS:"); }

std::int64_t peak_rss_bytes() {
  // getrusage also counts what the process was before exec, so it is only the second choice.
  if (const std::int64_t peak = status_bytes("VmHWM:"); peak > 0) return peak;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t heap_bytes() {
  const auto heap = mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks) + static_cast<std::int64_t>(heap.hblkhd);
}

void trim_heap() { malloc_trim(0); }

void claim_arena() {
  void* volatile piece = std::malloc(1);
  std::free(piece);
}

}  // namespace kvasir
