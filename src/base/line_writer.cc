#include "base/line_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "base/process_memory.h"

namespace kvasir {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 50;
constexpr std::size_t kMaxPieceBytes = 4096;  // a pipe with room takes so much at once (PIPE_BUF)

mode_t type_of(int fd) {
  struct stat status{};
  return fstat(fd, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

}  // namespace

Result<std::unique_ptr<LineWriter>> LineWriter::open(const std::string& path, OnTrouble on_trouble) {
  struct stat status{};
  const bool is_pipe = stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  // A pipe that is open for reading too needs no reader to be opened or written to.
  const int flags = is_pipe ? O_RDWR | O_NONBLOCK : O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0) return make_error(ErrorKind::kMachine, std::strerror(errno));
  return std::unique_ptr<LineWriter>(new LineWriter(fd, std::move(on_trouble)));
}

std::unique_ptr<LineWriter> LineWriter::of_descriptor(int descriptor, OnTrouble on_trouble) {
  // A pipe or a terminal is opened anew, so that its other users go on waiting as they did.
  int fd = -1;
  const mode_t type = type_of(descriptor);
  if (type == S_IFIFO || type == S_IFCHR) {
    const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
    fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  }
  if (fd < 0) fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  return std::unique_ptr<LineWriter>(new LineWriter(fd, std::move(on_trouble)));
}

LineWriter::LineWriter(int fd, OnTrouble on_trouble) : fd_(fd), on_trouble_(std::move(on_trouble)) {
  // Signals are for the process's other threads, which may have them blocked to take them one by one.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {  // no memory for a thread
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (fd_ >= 0) close(fd_);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    end_ = Clock::now() + kLastTime;
  }
  changed_.notify_one();
  thread_.join();
  if (fd_ >= 0) close(fd_);
}

void LineWriter::write(std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() > kMaxWaitingBytes) {
      ++num_dropped_;
      ++num_dropped_untold_;
      return;
    }
    waiting_ += line;
  }
  changed_.notify_one();
}

std::int64_t LineWriter::num_dropped() const {
  const std::lock_guard lock(mutex_);
  return num_dropped_;
}

void LineWriter::run() {
  claim_arena();
  std::string lines;
  for (;;) {
    try {
      if (!write_waiting(lines)) return;
    } catch (const std::exception&) {  // no memory to say what is wrong
      const std::lock_guard lock(mutex_);
      ++num_dropped_;
    }
  }
}

// Takes the lines that wait, or come. False: it has ended.
bool LineWriter::write_waiting(std::string& lines) {
  std::int64_t num_dropped = 0;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return false;
    lines.clear();
    lines.swap(waiting_);
    num_dropped = std::exchange(num_dropped_untold_, 0);
  }
  if (num_dropped > 0) tell(true, fmt::format("nobody takes its lines: {} were dropped", num_dropped));
  write_all(lines);
  return true;
}

void LineWriter::write_all(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    if (!write_line(lines.substr(0, end))) {
      const std::string why = std::strerror(errno);
      {
        const std::lock_guard lock(mutex_);
        ++num_dropped_;
        if (is_ending_ && Clock::now() >= end_) return;
      }
      tell(true, why);
    } else {
      tell(false, "is written again");
    }
    lines.remove_prefix(end);
  }
}

// False when the system does not take the line, or the time is over; errno says why.
bool LineWriter::write_line(std::string_view line) {
  while (!line.empty()) {
    if (!wait_for_room()) return false;
    const ssize_t count = ::write(fd_, line.data(), std::min(line.size(), kMaxPieceBytes));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return false;
    line.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool LineWriter::wait_for_room() {
  for (;;) {
    pollfd waiting{.fd = fd_, .events = POLLOUT, .revents = 0};
    const int ready = poll(&waiting, 1, kPollMs);
    if (ready > 0) return true;
    const std::lock_guard lock(mutex_);
    if (is_ending_ && Clock::now() >= end_) {
      errno = ETIMEDOUT;
      return false;
    }
  }
}

void LineWriter::tell(bool is_lost, std::string_view why) {
  if (std::exchange(is_losing_, is_lost) != is_lost && on_trouble_) on_trouble_(why);
}

}  // namespace kvasir
