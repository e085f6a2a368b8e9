#include "cli/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/printable.h"

namespace kvasir::cli {

Result<LineReader> LineReader::open(const std::string& path) {
  if (path == "-") return LineReader(STDIN_FILENO, 0);
  // A pipe without a writer must not hold up the signals that end the verb.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  const bool is_folder = fd >= 0 && ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
  if (fd < 0 || is_folder) {
    const int error = is_folder ? EISDIR : errno;
    if (fd >= 0) ::close(fd);
    return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(path), std::strerror(error)));
  }
  return LineReader(fd, S_ISREG(status.st_mode) ? status.st_size : 0);
}

LineReader::LineReader(LineReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      total_bytes_(other.total_bytes_),
      read_bytes_(other.read_bytes_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      searched_(other.searched_),
      is_too_long_(other.is_too_long_),
      has_ended_(other.has_ended_) {}

LineReader::~LineReader() {
  if (fd_ > STDIN_FILENO) ::close(fd_);
}

bool LineReader::take_line(std::string& line) {
  const std::size_t end = buffer_.find('\n', std::max(begin_, searched_));
  const bool is_whole = end != std::string::npos;
  searched_ = is_whole ? end + 1 : buffer_.size();
  if (!is_whole && (!has_ended_ || (begin_ == buffer_.size() && !is_too_long_))) {
    if (buffer_.size() - begin_ > kMaxLineBytes) pass_over();
    return false;
  }
  line = buffer_.substr(begin_, is_whole ? end - begin_ : std::string::npos);
  begin_ = is_whole ? end + 1 : buffer_.size();
  read_bytes_ += std::ssize(line) + (is_whole ? 1 : 0);
  return true;
}

void LineReader::pass_over() {
  is_too_long_ = true;
  read_bytes_ += std::ssize(buffer_) - static_cast<std::int64_t>(begin_);
  buffer_.clear();
  begin_ = searched_ = 0;
}

LineReader::Outcome LineReader::next(std::string& line, std::chrono::milliseconds patience) {
  std::array<char, 1 << 16> bytes;
  while (!take_line(line)) {
    if (has_ended_) return Outcome::kEnd;
    buffer_.erase(0, begin_);
    searched_ -= std::exchange(begin_, 0);
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(patience.count())) == 0) return Outcome::kNothingYet;
    const ssize_t count = ::read(fd_, bytes.data(), bytes.size());
    if (count > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    has_ended_ = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
  }
  if (!std::exchange(is_too_long_, false) && line.size() <= kMaxLineBytes) return Outcome::kLine;
  line.clear();
  return Outcome::kTooLong;
}

}  // namespace kvasir::cli
