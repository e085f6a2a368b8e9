#include "store/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"

extern char** environ;

namespace kvasir::store {
namespace {

constexpr int kPollMs = 100;
constexpr std::size_t kMaxTailBytes = 8192;
constexpr auto kGraceTime = std::chrono::seconds(5);

class Pipe {
 public:
  Pipe() { CHECK(::pipe2(ends_, O_CLOEXEC) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_write_end();
    ::close(ends_[0]);
  }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() {
    if (const int fd = std::exchange(ends_[1], -1); fd >= 0) ::close(fd);
  }

 private:
  int ends_[2] = {-1, -1};
};

// How the child is to start: its streams, its own process group, default signal handling.
class SpawnPlan {
 public:
  explicit SpawnPlan(int stderr_fd) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, stderr_fd, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t defaults;
    ::sigemptyset(&none);
    ::sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&defaults, signal);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // 0 or an errno value.
  int spawn(pid_t& pid, const std::vector<std::string>& argv,
            const std::vector<std::string>& environment) const {
    std::vector<char*> arguments = pointers_to(argv);
    std::vector<std::string> variables = merged(environment);
    std::vector<char*> variable_pointers = pointers_to(variables);
    return ::posix_spawnp(&pid, argv.front().c_str(), &actions_, &attributes_, arguments.data(),
                          variable_pointers.data());
  }

 private:
  static std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }

  // This process's environment with `changes` in place of the variables they name.
  static std::vector<std::string> merged(const std::vector<std::string>& changes) {
    const auto name_of = [](std::string_view variable) { return variable.substr(0, variable.find('=')); };
    std::vector<std::string> variables = changes;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      bool changed = false;
      for (const std::string& change : changes) changed = changed || name_of(change) == name_of(*variable);
      if (!changed) variables.emplace_back(*variable);
    }
    return variables;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

enum class ReadResult { kData, kNothing, kClosed };

// Appends what arrives within `timeout_ms` to `tail`, keeping its end.
ReadResult read_some(int fd, int timeout_ms, std::string& tail) {
  pollfd waiting = {fd, POLLIN, 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return ReadResult::kNothing;
  char buffer[4096];
  const ssize_t count = ::read(fd, buffer, sizeof(buffer));
  if (count < 0) return ReadResult::kNothing;
  if (count == 0) return ReadResult::kClosed;
  tail.append(buffer, static_cast<std::size_t>(count));
  if (tail.size() > kMaxTailBytes) tail.erase(0, tail.size() - kMaxTailBytes);
  return ReadResult::kData;
}

void end_group(pid_t pid) {
  ::kill(-pid, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kGraceTime;
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return;
  }
}

}  // namespace

Result<ChildExit> run_child(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                            const std::function<bool()>& keep_running) {
  Pipe pipe;
  pid_t pid = 0;
  if (const int error = SpawnPlan(pipe.write_end()).spawn(pid, argv, environment); error != 0) {
    const ErrorKind kind = error == ENOENT ? ErrorKind::kNotFound : ErrorKind::kMachine;
    return make_error(kind,
                      fmt::format("cannot run {}: {}", argv.front(), std::generic_category().message(error)));
  }
  pipe.close_write_end();
  ChildExit result;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) != pid) {
    if (!keep_running()) {
      end_group(pid);
      return make_error(ErrorKind::kCancelled, "interrupted");
    }
    if (read_some(pipe.read_end(), kPollMs, result.stderr_tail) == ReadResult::kClosed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));  // closed, but not yet gone
    }
  }
  while (read_some(pipe.read_end(), 0, result.stderr_tail) == ReadResult::kData) {
  }
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace kvasir::store
