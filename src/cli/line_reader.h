// Lines of a file or of the standard input, without being stuck in a read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kvasir/result.h"

namespace kvasir::cli {

// Thread safety: none.
class LineReader {
 public:
  enum class Outcome : std::uint8_t { kLine, kTooLong, kNothingYet, kEnd };
  static constexpr std::size_t kMaxLineBytes = 8 << 20;  // as a body of the server, by default

  // "-": the standard input. Error: kBadFile.
  static Result<LineReader> open(const std::string& path);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  // The next line, without its end, if one is there within `patience`. A last line need not end. A part that
  // cannot be read ends the file. kTooLong: a line beyond kMaxLineBytes was passed over; `line` is empty.
  Outcome next(std::string& line, std::chrono::milliseconds patience);
  // The bytes of the file (0 where they are unknown), and of the lines so far.
  std::int64_t total_bytes() const { return total_bytes_; }
  std::int64_t read_bytes() const { return read_bytes_; }

 private:
  LineReader(int fd, std::int64_t total_bytes) : fd_(fd), total_bytes_(total_bytes) {}
  bool take_line(std::string& line);
  void pass_over();

  int fd_;
  std::int64_t total_bytes_;
  std::int64_t read_bytes_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;     // of what is left in it
  std::size_t searched_ = 0;  // up to where there is no line's end
  bool is_too_long_ = false;  // what was left of the line has been passed over
  bool has_ended_ = false;
};

}  // namespace kvasir::cli
