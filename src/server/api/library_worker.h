// Fetches and deletes models while the server answers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "server/api/model_library.h"
#include "server/api/served_models.h"
#include "server/api/side_jobs.h"
#include "server/api_error.h"

namespace kvasir::server::api {

// One thread does one thing after the other. Callbacks run on it.
//
// Thread safety: all functions may be called from any thread.
class LibraryWorker {
 public:
  static constexpr std::size_t kMaxWaiting = 16;
  using Done = SideJobs::Done;

  // The models outlive this.
  LibraryWorker(ModelLibrary library, ServedModels& models) : library_(std::move(library)), models_(models) {}

  // Calls `done` when the model is served. Errors: 503 at once (too many wait, or the server ends), else through
  // `done`: 404, 400 or 500 with the library's message, 503.
  ApiStatus pull(std::string name, ModelLibrary::OnProgress on_progress, Done done);
  // Likewise when its files are gone. Error at once: 409 (the model stays).
  ApiStatus remove(std::size_t index, Done done);
  // Stops what runs. What waits is answered with 503.
  void close() { jobs_.close(); }

 private:
  std::string why_it_stays(std::size_t index) const;
  ApiStatus pull_now(const std::string& name, const ModelLibrary::OnProgress& on_progress);
  ApiStatus remove_now(std::size_t index);

  const ModelLibrary library_;
  ServedModels& models_;
  SideJobs jobs_{"models wait to be pulled or deleted", kMaxWaiting};
};

}  // namespace kvasir::server::api
