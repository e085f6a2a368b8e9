#include "base/address_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace kvasir {
namespace {

// All mappings of this process, as the kernel counts them; 0 when it does not say.
std::int64_t mapped_bytes() {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 64> text;
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  std::int64_t num_pages = 0;
  std::from_chars(text.data(), text.data() + std::max<ssize_t>(size, 0), num_pages);
  return num_pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

std::optional<std::int64_t> free_address_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return std::max<std::int64_t>(static_cast<std::int64_t>(limit.rlim_cur) - mapped_bytes(), 0);
}

}  // namespace kvasir
