// Fetches and deletes models while the server answers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "server/api/model_library.h"
#include "server/api/served_models.h"
#include "server/api_error.h"

namespace kvasir::server::api {

// One thread does one thing after the other. Callbacks run on it.
//
// Thread safety: all functions may be called from any thread.
class LibraryWorker {
 public:
  static constexpr std::size_t kMaxWaiting = 16;
  using Done = std::function<void(ApiStatus)>;

  // The models outlive this.
  LibraryWorker(ModelLibrary library, ServedModels& models) : library_(std::move(library)), models_(models) {}
  ~LibraryWorker() { close(); }

  // Calls `done` when the model is served. Errors: 503 at once (too many wait, or the server ends), else through
  // `done`: 404, 400 or 500 with the library's message, 503.
  ApiStatus pull(std::string name, ModelLibrary::OnProgress on_progress, Done done);
  // Likewise when its files are gone. Error at once: 409 (the model stays).
  ApiStatus remove(std::size_t index, Done done);
  // Stops what runs. What waits is answered with 503.
  void close();

 private:
  struct Job {
    std::function<ApiStatus()> work;
    Done done;
  };

  ApiStatus pull_now(const std::string& name, const ModelLibrary::OnProgress& on_progress);
  ApiStatus remove_now(std::size_t index);
  ApiStatus enqueue(Job job);
  void run(const std::stop_token& stop);

  const ModelLibrary library_;
  ServedModels& models_;
  std::mutex closing_;  // before mutex_
  std::mutex mutex_;    // the four below
  std::condition_variable_any changed_;
  std::deque<Job> waiting_;
  bool is_closed_ = false;
  std::jthread thread_;  // begins with the first job
};

}  // namespace kvasir::server::api
