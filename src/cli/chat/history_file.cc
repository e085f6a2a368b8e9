#include "cli/chat/history_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "base/printable.h"

namespace kvasir::cli {
namespace {

// Locked as long as it lives.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ >= 0 && (::fchmod(fd_, 0600) != 0 || ::flock(fd_, LOCK_EX) != 0)) close();
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() { close(); }

  bool is_open() const { return fd_ >= 0; }
  bool append(std::string_view text) {
    while (!text.empty()) {
      const ssize_t num_written = ::write(fd_, text.data(), text.size());
      if (num_written < 0 && errno == EINTR) continue;
      if (num_written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(num_written));
    }
    return true;
  }
  bool clear() { return ::ftruncate(fd_, 0) == 0; }
  std::optional<std::string> read() {
    std::string text;
    char piece[1 << 16];
    while (true) {
      const ssize_t num_read = ::read(fd_, piece, sizeof piece);
      if (num_read < 0 && errno == EINTR) continue;
      if (num_read < 0) return std::nullopt;
      if (num_read == 0) return text;
      text.append(piece, static_cast<std::size_t>(num_read));
      // The end is enough when the file is no history.
      if (text.size() > 2 * HistoryFile::kMaxBytes) text.erase(0, text.size() - HistoryFile::kMaxBytes);
    }
  }

 private:
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  int fd_;
};

std::string to_line(std::string_view message) {
  std::string line;
  for (const char c : message) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c;
    }
  }
  return line + '\n';
}

std::string from_line(std::string_view line) {
  std::string message;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      message += line[++i] == 'n' ? '\n' : line[i];
    } else {
      message += line[i];
    }
  }
  return message;
}

std::vector<std::string> read_lines(std::string_view text) {
  std::vector<std::string> messages;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) break;  // a line that was cut off
    if (end > 0 && end <= 2 * HistoryFile::kMaxEntryBytes) messages.push_back(from_line(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  return messages;
}

std::unexpected<Error> unusable(const std::string& path) {
  return make_error(ErrorKind::kMachine, fmt::format("{}: cannot keep the history: {}", printable_line(path),
                                                     std::strerror(errno)));
}

}  // namespace

std::optional<std::string> HistoryFile::default_path() {
  // Relative ones are to be ignored (XDG Base Directory Specification 0.8).
  if (const auto state = env_string("XDG_STATE_HOME"); state && state->starts_with('/')) {
    return *state + "/kvasir/history";
  }
  if (const auto home = env_string("HOME")) return *home + "/.local/state/kvasir/history";
  return std::nullopt;
}

Result<std::vector<std::string>> HistoryFile::load() {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  LockedFile file(path_);
  if (!file.is_open()) return unusable(path_);
  const auto text = file.read();
  if (!text) return unusable(path_);
  std::vector<std::string> messages = read_lines(*text);
  const bool is_too_large = messages.size() > 2 * kMaxEntries || text->size() > kMaxBytes;
  if (messages.size() > kMaxEntries) {
    messages.erase(messages.begin(), messages.end() - static_cast<std::ptrdiff_t>(kMaxEntries));
  }
  if (!is_too_large) return messages;
  std::string kept;
  for (const std::string& message : messages) kept += to_line(message);
  while (kept.size() > kMaxBytes / 2) kept.erase(0, kept.find('\n') + 1);
  if (!file.clear() || !file.append(kept)) return unusable(path_);
  return messages;
}

Status HistoryFile::append(std::string_view message) {
  if (message.empty() || message.size() > kMaxEntryBytes) return {};
  LockedFile file(path_);
  if (!file.is_open() || !file.append(to_line(message))) return unusable(path_);
  return {};
}

}  // namespace kvasir::cli
