// Loads and unloads adapters while the server answers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/engine.h"
#include "server/api/side_jobs.h"
#include "server/api_error.h"

namespace kvasir::server::api {

// An adapter as a request asks for it.
struct AdapterRequest {
  std::string name;
  std::string path;         // a folder or a file in one of the operator's folders; empty: the name
  bool replaces = false;    // one that has the name already
};

// Adapters come from the operator's folders alone: a request names what lies directly in one of them.
//
// Thread safety: all functions may be called from any thread. Callbacks run on a thread of its own, one after the other.
class AdapterLoader {
 public:
  static constexpr std::size_t kMaxWaiting = 64;
  using Done = SideJobs::Done;
  // Whether a model is called so.
  using IsModel = std::function<bool(const std::string& name)>;

  // The engine outlives this.
  AdapterLoader(std::vector<std::string> folders, Engine& engine, IsModel is_model);

  // Calls `done` when requests find it. Errors: 400 (its name, its file), 404 (no folder has it), 503 (no room now).
  ApiStatus load(AdapterRequest request, Done done);
  // Calls `done` when requests find it no more. Error: 404.
  ApiStatus unload(std::string name, Done done);
  void close() { jobs_.close(); }

 private:
  ApiStatus load_now(const AdapterRequest& request);
  ApiStatus unload_now(const std::string& name);
  // Where it is. Error: 404.
  ApiResult<std::string> find(const std::string& path) const;

  const std::vector<std::string> folders_;
  Engine& engine_;
  const IsModel is_model_;
  SideJobs jobs_{"adapters wait to be loaded or unloaded", kMaxWaiting};
};

}  // namespace kvasir::server::api
