#include "cli/chat/external_editor.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "base/printable.h"
#include "cli/input_file.h"

extern char** environ;

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20;

std::unexpected<Error> failed(std::string_view what, int reason) {
  return make_error(ErrorKind::kMachine, fmt::format("{}: {}", what, std::strerror(reason)));
}

// A file with the text; it goes with this.
class Draft {
 public:
  static Result<Draft> make(std::string_view text) {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    if (error) folder = "/tmp";
    std::string path = (folder / "kvasir-message-XXXXXX.md").string();
    const int fd = ::mkstemps(path.data(), 3);  // mode 0600
    if (fd < 0) return failed(path, errno);
    Draft draft(path);
    const bool is_written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int reason = errno;
    ::close(fd);
    if (!is_written) return failed(path, reason);
    return draft;
  }
  Draft(Draft&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  explicit Draft(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// As a shell takes it, for many set it with flags: "code --wait".
Result<int> run_editor(const std::string& editor, const std::string& path) {
  std::string script = editor + " \"$1\"";
  std::string shell = "sh", flag = "-c", name = "kvasir", file = path;
  char* arguments[] = {shell.data(), flag.data(), script.data(), name.data(), file.data(), nullptr};
  posix_spawnattr_t attributes;
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);  // ours blocks Ctrl-C
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int reason = ::posix_spawnp(&process, "sh", nullptr, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  if (reason != 0) return failed("sh", reason);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return failed(editor, errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<std::string> edit_text(std::string_view text) {
  auto editor = env_string("VISUAL");
  if (!editor) editor = env_string("EDITOR");
  KVASIR_TRY(const Draft draft, Draft::make(text));
  KVASIR_TRY(const int exit_code, run_editor(editor.value_or("vi"), draft.path()));
  if (exit_code != 0) {
    return make_error(ErrorKind::kCancelled, fmt::format("{} ended with exit code {}; nothing was sent",
                                                         printable(editor.value_or("vi")), exit_code));
  }
  KVASIR_TRY(std::string edited, read_file(draft.path(), kMaxTextBytes));
  edited.erase(edited.find_last_not_of("\r\n") + 1);
  return edited;
}

}  // namespace kvasir::cli
