// The hub's API: revisions, lists of files, and where a file's bytes are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "store/hub/http_client.h"
#include "store/hub/hub_name.h"
#include "store/hub/hub_settings.h"

namespace kvasir::store {

// A revision as it is now.
struct HubCommit {
  std::string sha;      // 40 hex digits
  std::string license;  // as the model's card says; may be empty
};

struct HubFile {
  std::string path;  // in the repository
  std::int64_t size_bytes = 0;
  std::string etag;     // SHA-256 when is_lfs, else git's SHA-1 of the blob; hex
  bool is_lfs = false;  // a large file, which another host may serve
};

// Where the bytes of a file are at present. An address of another host expires.
struct HubTarget {
  std::string url;
  bool is_foreign = false;  // another host: no token goes there
};

// Redirects are followed by hand: within the endpoint's own host with the token, and to no other. Requests
// that fail for a passing reason are tried again.
//
// Thread safety: none; one client a thread.
class HubClient {
 public:
  // `settings` must outlive the client. `keep_running` is called several times a second; false ends a request
  // with kCancelled.
  HubClient(const HubSettings& settings, std::function<bool()> keep_running);

  // Errors here and below: kNotFound or kBadFile with what the hub refuses, kMachine when it cannot be
  // reached, kUnavailable when it stays busy, kCancelled. All are one line that begins with the model.
  Result<HubCommit> resolve_revision(const HubName& name);
  // Every file of a commit. Error: kBadFile too for a list that is no such list.
  Result<std::vector<HubFile>> list_files(const HubName& name, const std::string& commit);
  // Error: kBadFile too when the file there is not the one of the list.
  Result<HubTarget> locate(const HubName& name, const std::string& commit, const HubFile& file);

  // The whole content of a small file, which is not checked beyond its size.
  Result<std::string> read_file(const HubName& name, const std::string& commit, const HubFile& file);

  // Bytes [begin, begin + num_bytes) of a file, all inside of it. A server that ignores ranges is read until they have
  // come. Errors: kBadFile too when other bytes come.
  Result<std::string> read_range(const HubName& name, const std::string& commit, const HubFile& file,
                                 std::int64_t begin, std::int64_t num_bytes);

  // Asks a target; the token goes along if the target is the endpoint's own host. The answer may be a
  // redirect.
  HttpResponse get(const HubTarget& target, const std::string& range, const BodySink& sink);
  HubTarget target_of(const std::string& url) const;

  // Says what an answer that is no success means. `path`: the file asked for, or empty.
  Error explain(const HttpResponse& response, const HubName& name, const std::string& path) const;

 private:
  struct ByteRange {
    std::int64_t begin = 0, num_bytes = 0;
    std::string bytes;  // that have come
  };

  // Asks the endpoint and follows its own redirects. `target` takes the address where they end, and the first
  // one on another host; without `target` another host is an error.
  Result<HttpResponse> ask(HttpRequest request, const HubName& name, const std::string& path,
                           HubTarget* target);
  Result<HttpResponse> ask_until_answered(const HttpRequest& request, const HubName& name,
                                          const std::string& path);
  Result<HttpResponse> get_range(const HubName& name, HubTarget target, const HubFile& file, ByteRange& wanted);
  std::string api_url(const HubName& name) const;

  const HubSettings& settings_;
  std::function<bool()> keep_running_;
  std::string origin_;  // of the endpoint
  HttpClient http_;
};

// The address that a Link header names as rel="next"; empty without one.
std::string_view next_page(std::string_view link);

}  // namespace kvasir::store
