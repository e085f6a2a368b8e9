// Requests that were submitted together, until their last news.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "kvasir/request.h"
#include "python/mailbox.h"
#include "python/session.h"

namespace kvasir::python {

// Its end cancels what has not ended.
//
// Thread safety: one thread at a time, which holds the interpreter.
class Pending {
 public:
  // Raises what the engine refuses; then none of them runs.
  Pending(std::shared_ptr<Session> session, std::vector<Request> requests);
  ~Pending() { cancel(); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Takes the outputs that have come since; with `wait` at least one, unless all have ended. A signal's
  // handler runs meanwhile, and its exception leaves here.
  std::vector<Output> take(bool wait);
  bool is_finished() const { return num_unfinished_ == 0; }
  // Within a step; the last news still come.
  void cancel();
  // Readable while take() has something to give.
  int descriptor();

 private:
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<RequestId> ids_;
  std::size_t num_unfinished_ = 0;
};

}  // namespace kvasir::python
