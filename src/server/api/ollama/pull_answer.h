// The answer to POST /api/pull while the model is fetched.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/api/endpoint.h"
#include "server/api/model_library.h"

namespace kvasir::server::api {

// A stream begins with the first step. An error before that is an HTTP error; behind it, it is a line, as Ollama's
// clients read it. A client that goes stops the pull.
//
// Thread safety: step() and end() come from one thread, the library's.
class PullAnswer : public std::enable_shared_from_this<PullAnswer> {
 public:
  PullAnswer(Writer writer, std::string model, bool is_stream);

  // Before the pull is begun, on the writer's thread.
  void watch_client();
  // False: nobody waits any more.
  bool step(const ModelLibrary::Progress& progress);
  void end(ApiStatus status);

 private:
  void write_line(std::string line);

  const Writer writer_;
  const std::string model_;
  const bool is_stream_;
  bool has_begun_ = false;
  std::atomic<bool> has_left_{false};
};

}  // namespace kvasir::server::api
