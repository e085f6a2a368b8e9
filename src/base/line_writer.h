// Writes the lines of a log without ever waiting for its reader.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "kvasir/result.h"

namespace kvasir {

// A thread of its own writes. Lines wait in a bounded buffer; beyond it they are dropped and counted, as are
// lines that the system does not take. At the end the last lines have kLastTime to leave.
//
// Thread safety: write() and num_dropped() may be called from any thread.
class LineWriter {
 public:
  // Told of the first line that is lost and why, and once lines are written again. Called on the writer's thread.
  using OnTrouble = std::function<void(std::string_view what)>;
  static constexpr std::size_t kMaxWaitingBytes = 1 << 20;
  static constexpr std::chrono::milliseconds kLastTime{500};

  // Appends to the file. A pipe is opened whether somebody reads it or not. Error: kMachine, without the path.
  static Result<std::unique_ptr<LineWriter>> open(const std::string& path, OnTrouble on_trouble);
  // Writes to a descriptor that the process has, such as 2.
  static std::unique_ptr<LineWriter> of_descriptor(int descriptor, OnTrouble on_trouble);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // `line` ends with its line break.
  void write(std::string_view line);
  std::int64_t num_dropped() const;

 private:
  LineWriter(int fd, OnTrouble on_trouble);

  void run();
  bool write_waiting(std::string& lines);
  void write_all(std::string_view lines);
  bool write_line(std::string_view line);
  bool wait_for_room();
  void tell(bool is_lost, std::string_view why);

  const int fd_;
  const OnTrouble on_trouble_;
  bool is_losing_ = false;  // the thread's own

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;  // guarded by mutex_, as are the rest
  std::int64_t num_dropped_ = 0;
  std::int64_t num_dropped_untold_ = 0;
  bool is_ending_ = false;
  std::chrono::steady_clock::time_point end_{};
  std::thread thread_;
};

}  // namespace kvasir
