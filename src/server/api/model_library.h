// What fetches models for a server that runs, and deletes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kvasir/result.h"
#include "server/api/served_models.h"

namespace kvasir::server::api {

// Both empty: the server fetches and deletes nothing. They are called on one thread, one after the other.
struct ModelLibrary {
  struct Progress {
    std::string_view step;  // "downloading", "unpacking", ...
    std::int64_t bytes_done = 0;
    std::int64_t bytes_total = 0;  // 0: not known
  };
  // False asks the work to stop.
  using OnProgress = std::function<bool(const Progress&)>;

  // Fetches the model of that name where it is not on this machine, and finds room for it. Never reads a path that a
  // client names. Errors: kNotFound (nobody knows the name), kMachine (disk, network, memory), kBadFile, kUsage,
  // kCancelled.
  std::function<Result<ServedModel>(const std::string& name, const OnProgress& on_progress)> pull;
  // Deletes the files of a model that was pulled; the argument is its ServedModel::path. Errors: kUsage (it is a file
  // of the operator's), kNotFound, kMachine.
  std::function<Status(const std::string& path)> remove;
  // Whether remove() would delete something.
  std::function<bool(const std::string& path)> may_remove;
};

}  // namespace kvasir::server::api
