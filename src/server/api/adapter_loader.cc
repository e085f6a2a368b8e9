#include "server/api/adapter_loader.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/printable.h"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kMaxNameBytes = 256;
constexpr int kNiceness = 10;  // of the thread: the engine's go first

ApiError api_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kNotFound:
      return {404, error.message, "lora_name", "model_not_found"};
    case ErrorKind::kUnavailable:
    case ErrorKind::kMachine:
      return {503, error.message, {}, "overloaded"};
    default:
      return {400, error.message, "lora_path", {}};
  }
}

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// Of what lies directly in a folder.
bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('\0');
}

}  // namespace

AdapterLoader::AdapterLoader(std::vector<std::string> folders, Engine& engine, IsModel is_model)
    : folders_([&] {
        std::ranges::transform(folders, folders.begin(), without_last_slash);
        return std::move(folders);
      }()),
      engine_(engine),
      is_model_(std::move(is_model)) {}

ApiStatus AdapterLoader::load(AdapterRequest request, Done done) {
  if (request.name.empty() || request.name.size() > kMaxNameBytes) {
    return bad_request(fmt::format("lora_name: must have 1 to {} bytes, has {}", kMaxNameBytes, request.name.size()), "lora_name");
  }
  if (is_model_(request.name)) {
    return bad_request(fmt::format("lora_name: a model is called \"{}\"", printable(request.name)), "lora_name");
  }
  return jobs_.enqueue([this, request = std::move(request)] { return load_now(request); }, std::move(done));
}

ApiStatus AdapterLoader::unload(std::string name, Done done) {
  return jobs_.enqueue([this, name = std::move(name)] { return unload_now(name); }, std::move(done));
}

ApiStatus AdapterLoader::load_now(const AdapterRequest& request) {
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread alone, on Linux
  const AdapterNames loaded = engine_.adapters();
  if (!request.replaces && std::ranges::find(*loaded, request.name) != loaded->end()) {
    return bad_request(fmt::format("lora_name: the adapter \"{}\" is loaded already (load_inplace replaces it)", printable(request.name)),
                       "lora_name");
  }
  KVASIR_TRY(const std::string path, find(request.path.empty() ? request.name : request.path));
  const Status made = engine_.load_adapter({.name = request.name, .path = path});
  if (!made) return std::unexpected(api_error(made.error()));
  return {};
}

ApiStatus AdapterLoader::unload_now(const std::string& name) {
  const Status gone = engine_.unload_adapter(name);
  if (!gone) return std::unexpected(api_error(gone.error()));
  return {};
}

ApiResult<std::string> AdapterLoader::find(const std::string& path) const {
  for (const std::string& folder : folders_) {
    std::string_view name = path;
    if (name.starts_with(folder + "/")) name.remove_prefix(folder.size() + 1);
    if (!is_file_name(name)) continue;
    std::error_code error;
    std::string found = fmt::format("{}/{}", folder, name);
    if (std::filesystem::exists(found, error)) return found;
    found += ".gguf";
    if (std::filesystem::exists(found, error)) return found;
  }
  return std::unexpected(ApiError{404,
                                  fmt::format("lora_path: no adapter \"{}\" lies in a folder of --lora-dir ({})", printable(path),
                                              printable(fmt::format("{}", fmt::join(folders_, ", ")))),
                                  "lora_path", "model_not_found"});
}

}  // namespace kvasir::server::api
