#include "server/api/library_worker.h"

#include <fmt/format.h>

#include <utility>

namespace kvasir::server::api {
namespace {

ApiError api_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kCancelled:
      return {503, "the pull was stopped", {}, "overloaded"};
    case ErrorKind::kNotFound:
      return {404, error.message, "model", "model_not_found"};
    case ErrorKind::kUsage:
      return {400, error.message, "model", {}};
    case ErrorKind::kMachine:
      return {503, error.message, {}, "overloaded"};
    default:
      return {500, error.message, {}, "internal_error"};
  }
}

}  // namespace

ApiStatus LibraryWorker::pull(std::string name, ModelLibrary::OnProgress on_progress, Done done) {
  auto work = [this, name = std::move(name), on_progress = std::move(on_progress)] {
    return pull_now(name, on_progress);
  };
  return jobs_.enqueue(std::move(work), std::move(done));
}

// Empty: it may be deleted.
std::string LibraryWorker::why_it_stays(std::size_t index) const {
  const ServedModel& model = models_.model(index);
  if (index == 0) return "answers requests that name no model, and stays";
  for (const std::size_t other : models_.indices()) {
    if (other != index && models_.model(other).path == model.path) {
      return fmt::format("has the files of {}, which is served", models_.model(other).name);
    }
  }
  if (model.was_pulled && model.load != nullptr && library_.may_remove(model.path)) return "";
  return "was not pulled by a request: its files are the operator's";
}

ApiStatus LibraryWorker::remove(std::size_t index, Done done) {
  const ServedModel& model = models_.model(index);
  if (const std::string why = why_it_stays(index); !why.empty()) {
    return std::unexpected(ApiError{409, fmt::format("{} {}", model.name, why), "model", "model_in_use"});
  }
  return jobs_.enqueue([this, index] { return remove_now(index); }, std::move(done));
}

ApiStatus LibraryWorker::pull_now(const std::string& name, const ModelLibrary::OnProgress& on_progress) {
  if (models_.find_named(name) != ServedModels::npos) return {};  // of an earlier job
  auto pulled = library_.pull(name, [&](const ModelLibrary::Progress& progress) {
    return !jobs_.stop_token().stop_requested() && on_progress(progress);
  });
  if (!pulled) return std::unexpected(api_error(pulled.error()));
  if (models_.find_named(pulled->name) != ServedModels::npos) return {};  // by its whole name
  if (models_.add(*std::move(pulled))) return {};
  return std::unexpected(
      ApiError{503,
               fmt::format("{} models were pulled since the start, which is the limit: it is "
                           "served after a restart",
                           ServedModels::kMaxAdded),
               {},
               "overloaded"});
}

ApiStatus LibraryWorker::remove_now(std::size_t index) {
  const ServedModel& model = models_.model(index);
  if (models_.find_named(model.name) != index) {
    return std::unexpected(
        ApiError{404, fmt::format("the model \"{}\" was deleted", model.name), "model", "model_not_found"});
  }
  if (!models_.remove(index, jobs_.stop_token())) return std::unexpected(SideJobs::shutting_down());
  const Status removed = library_.remove(model.path);
  if (!removed) return std::unexpected(api_error(removed.error()));
  return {};
}

}  // namespace kvasir::server::api
