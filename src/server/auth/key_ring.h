// The keys that may use the server: a file of API keys, read again when it changes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_watch.h"
#include "server/auth/key_file.h"
#include "server/http/admission.h"

namespace kvasir::server::auth {

// Whether everybody may ask: health, the version, the page and what describes the API.
bool is_public_path(std::string_view path);

// Asks every request for a key, but those for public paths. A key that is revoked in the file is refused within a
// second, and its running answers end. A file that cannot be read any more leaves the keys as they were until it
// can, and is warned of once.
//
// Thread safety: admit() may be called from any thread.
class KeyRing final : public http::Admission {
 public:
  using Warn = std::function<void(std::string_view line)>;

  // Errors: kBadFile. `warn` takes lines for the operator.
  static Result<std::unique_ptr<KeyRing>> open(std::string path, Warn warn);

  // The tenant whose key came with the request, without a name where none is needed. Error: 401.
  ApiResult<Tenant> admit(const http::Request& request) override;
  bool admits_still(const Tenant& tenant) override;

 private:
  using Keys = std::shared_ptr<const std::vector<ApiKey>>;

  KeyRing(std::string path, Warn warn) : path_(std::move(path)), warn_(std::move(warn)), file_({path_}) {}
  // As the file has them, or had them a second ago.
  Keys keys();

  const std::string path_;
  const Warn warn_;
  std::mutex mutex_;  // of all below
  Keys keys_;
  FileWatch file_;
};

}  // namespace kvasir::server::auth
