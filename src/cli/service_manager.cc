#include "cli/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/env.h"

namespace kvasir::cli {
namespace {

// Connected to a path, or to a name that is no file where '@' stands for its leading zero byte.
int connect_to(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) return -1;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (descriptor >= 0 && ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    ::close(descriptor);
    return -1;
  }
  return descriptor;
}

std::optional<std::int64_t> number_in(const char* variable) {
  const auto text = env_string(variable);
  std::int64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return {};
  return value;
}

}  // namespace

ServiceManager::ServiceManager() {
  const auto name = env_string("NOTIFY_SOCKET");
  if (!name) return;
  socket_ = connect_to(*name);
  const auto interval = number_in("WATCHDOG_USEC"), pid = number_in("WATCHDOG_PID");
  if (interval && *interval > 0 && (!pid || *pid == ::getpid()))
    watchdog_ = std::chrono::microseconds(*interval);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

// A message that cannot be sent changes nothing here: the manager notices its absence.
void ServiceManager::send(std::string_view state) const {
  if (socket_ >= 0) ::send(socket_, state.data(), state.size(), MSG_NOSIGNAL);
}

}  // namespace kvasir::cli
