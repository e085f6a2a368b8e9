#include "python/pending.h"

#include <chrono>
#include <utility>

#include "engine/stop_token.h"
#include "python/python_error.h"

namespace kvasir::python {
namespace {

constexpr std::chrono::milliseconds kSignalInterval{50};  // how late Ctrl-C may be noticed

}  // namespace

Pending::Pending(std::shared_ptr<Session> session, std::vector<Request> requests)
    : session_(std::move(session)), mailbox_(std::make_shared<Mailbox>()), num_unfinished_(requests.size()) {
  const std::shared_ptr<Engine> engine = session_->engine();
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const bool keep_stop = requests[i].sampling.include_stop_str_in_output;
    submissions.push_back({std::move(requests[i]), [mailbox = mailbox_, i, keep_stop](RequestOutput output) {
                             if (!keep_stop) drop_stop_token(output);
                             mailbox->put({i, std::move(output)});
                           }});
  }
  ids_ = value_or_raise([&] {
    const Session::Away away(*session_);
    return engine->submit(std::move(submissions));
  }());
}

std::vector<Output> Pending::take(bool wait) {
  session_->check_process();  // outputs belong to the process that loaded the engine
  std::vector<Output> outputs;
  while (true) {
    {
      const Session::Away away(*session_);
      outputs = mailbox_->take(wait && !is_finished() ? kSignalInterval : std::chrono::milliseconds(0));
    }
    if (!outputs.empty() || !wait || is_finished()) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    session_->check_process();
  }
  for (const Output& output : outputs) num_unfinished_ -= output.news.request_finished ? 1 : 0;
  return outputs;
}

void Pending::cancel() {
  if (is_finished() || session_->is_of_another_process()) return;
  const std::shared_ptr<Engine> engine = session_->engine_if_open();
  if (engine == nullptr) return;
  for (const RequestId id : ids_) engine->cancel(id);
}

int Pending::descriptor() { return value_or_raise(mailbox_->descriptor()); }

}  // namespace kvasir::python
