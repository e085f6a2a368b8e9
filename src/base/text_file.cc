#include "base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file_links.h"
#include "base/printable.h"

namespace kvasir {
namespace {

std::unexpected<Error> not_writable(const std::string& path, int reason) {
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot be written: {}", printable_line(path), std::strerror(reason)));
}

std::unexpected<Error> not_a_file(const std::string& path) {
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot be written: it is no regular file", printable_line(path)));
}

// Another name of the file would keep the old text.
std::unexpected<Error> has_other_names(const std::string& path) {
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot be written: it has hard links, which would keep what they have; "
                                "symbolic ones are followed",
                                printable_line(path)));
}

bool has_hard_links(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && std::filesystem::hard_link_count(path, ignored) > 1;
}

// Two processes do not write into one draft.
std::string draft_of(const std::string& path) { return fmt::format("{}.{}.part", path, ::getpid()); }

int open_draft(const std::string& draft, mode_t mode) {
  return ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
}

// A pipe or a device in the file's place would be gone.
bool is_replaceable(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) return false;  // links in a circle
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status) ||
         std::filesystem::is_directory(status);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t num_written = ::write(fd, text.data(), text.size());
    if (num_written < 0 && errno == EINTR) continue;
    if (num_written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(num_written));
  }
  return true;
}

}  // namespace

Status check_readable(const std::string& path, std::string_view param) {
  const auto refuse = [&](std::string_view why) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: cannot be read: {}", printable_line(path), why),
                      std::string(param));
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (error) return refuse(error.message());
  if (std::filesystem::is_directory(status)) return refuse("it is a folder");
  if (!std::filesystem::is_regular_file(status)) return refuse("it is no regular file");
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) return refuse(std::strerror(errno));
  return {};
}

std::optional<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (const std::size_t num_read = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, num_read);
    if (text.size() > max_bytes) return std::nullopt;
  }
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return text;
}

Status replace_text_file(const std::string& link, std::string_view text, mode_t mode) {
  const std::string path = file_behind_links(link);
  if (!is_replaceable(path)) return not_a_file(path);
  if (has_hard_links(path)) return has_other_names(path);
  const std::string draft = draft_of(path);
  const int fd = open_draft(draft, mode);
  if (fd < 0) return not_writable(path, errno);
  bool is_done = write_all(fd, text) && ::fsync(fd) == 0;
  int reason = errno;
  ::close(fd);
  if (is_done) {
    is_done = std::rename(draft.c_str(), path.c_str()) == 0;
    reason = errno;
  }
  if (is_done) return {};
  ::unlink(draft.c_str());
  return not_writable(path, reason);
}

Status can_replace_text_file(const std::string& link) {
  const std::string path = file_behind_links(link);
  if (!is_replaceable(path)) return not_a_file(path);
  if (has_hard_links(path)) return has_other_names(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return not_writable(path, EISDIR);
  const std::string draft = draft_of(path);
  const int fd = open_draft(draft, 0600);
  if (fd < 0) return not_writable(path, errno);
  ::close(fd);
  ::unlink(draft.c_str());
  return {};
}

}  // namespace kvasir
