#include "cli/sigbus_handler.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "cli/verb.h"

namespace kvasir::cli {
namespace {

// All of this runs in a signal handler: no allocation, no lock, nothing of stdio.

constexpr std::size_t kMaxMapsBytes = std::size_t{1} << 20;

std::string_view read_maps() {
  static std::array<char, kMaxMapsBytes> buffer;
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return {};
  std::size_t size = 0;
  for (ssize_t count = 1; count > 0 && size < buffer.size();) {
    count = ::read(maps, buffer.data() + size, buffer.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
  }
  ::close(maps);
  return {buffer.data(), size};
}

// The path of a line "begin-end mode offset device inode   path" when `address` lies in [begin, end).
std::string_view path_in(std::string_view line, std::uintptr_t address) {
  std::uintptr_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, begin, 16);
  if (first.ptr == last) return {};
  std::from_chars(first.ptr + 1, last, end, 16);
  const std::size_t slash = line.find('/');
  return begin <= address && address < end && slash != line.npos ? line.substr(slash) : std::string_view();
}

std::string_view mapped_file_at(const void* address) {
  std::string_view rest = read_maps();
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view path = path_in(rest.substr(0, end), reinterpret_cast<std::uintptr_t>(address));
    if (!path.empty()) return path;
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return "a mapped file";
}

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void end_with_a_line(int, siginfo_t* info, void*) {
  static std::atomic_flag is_ending;
  while (is_ending.test_and_set()) ::pause();  // another thread says it, and ends this one with it
  say("kvasir: ");
  say(mapped_file_at(info->si_addr));
  say(": shorter than when it was opened, or unreadable (to replace a file in use, rename another to its "
      "name)\n");
  ::_exit(kExitBadFile);
}

}  // namespace

void install_sigbus_handler() {
  struct sigaction action = {};
  action.sa_sigaction = end_with_a_line;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace kvasir::cli
