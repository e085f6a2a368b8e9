// Where the engine's thread leaves the news of requests for a thread of Python's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::python {

// News of one of the requests that were submitted together.
struct Output {
  std::size_t request = 0;  // which, in their order
  RequestOutput news;
};

// The engine's thread never waits for the interpreter: it puts, and the thread that waits here or at the file
// descriptor takes.
//
// Thread safety: any thread may call anything. Invariant: the descriptor, once there is one, is readable just
// as long as there is something to take.
class Mailbox {
 public:
  Mailbox() = default;
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void put(Output output);
  // Takes the outputs that have come, possibly none after `patience`.
  std::vector<Output> take(std::chrono::milliseconds patience);
  // To wait for with poll() and what is built on it; the mailbox's. Error: kMachine when the system has none
  // left.
  Result<int> descriptor();

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Output> outputs_;
  int descriptor_ = -1;
};

}  // namespace kvasir::python
