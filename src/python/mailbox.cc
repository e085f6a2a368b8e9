#include "python/mailbox.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace kvasir::python {
namespace {

// Neither can fail: the descriptor is an eventfd that counts far from its end.
void make_readable(int descriptor) {
  const std::uint64_t one = 1;
  static_cast<void>(::write(descriptor, &one, sizeof one) == sizeof one);
}

void make_unreadable(int descriptor) {
  std::uint64_t count = 0;
  static_cast<void>(::read(descriptor, &count, sizeof count) == sizeof count);
}

}  // namespace

Mailbox::~Mailbox() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Mailbox::put(Output output) {
  {
    const std::lock_guard lock(mutex_);
    if (descriptor_ >= 0 && outputs_.empty()) make_readable(descriptor_);
    outputs_.push_back(std::move(output));
  }
  arrived_.notify_one();
}

std::vector<Output> Mailbox::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, patience, [this] { return !outputs_.empty(); });
  if (descriptor_ >= 0 && !outputs_.empty()) make_unreadable(descriptor_);
  return std::exchange(outputs_, {});
}

Result<int> Mailbox::descriptor() {
  const std::lock_guard lock(mutex_);
  if (descriptor_ >= 0) return descriptor_;
  descriptor_ = ::eventfd(outputs_.empty() ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor_ >= 0) return descriptor_;
  return make_error(ErrorKind::kMachine, fmt::format("stream: no file descriptor: {}", std::strerror(errno)));
}

}  // namespace kvasir::python
