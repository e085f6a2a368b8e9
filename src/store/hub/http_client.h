// One HTTP request at a time, over libcurl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvasir::store {

struct HttpRequest {
  std::string url;
  std::string bearer_token;  // empty: no Authorization header
  std::string range;         // "0-99"; empty: everything
  bool head = false;
};

struct HttpResponse {
  enum class End : std::uint8_t {
    kWhole,    // to the end
    kBroken,   // no answer, or the connection ended in the middle: `failure` says why
    kRefused,  // the sink did not want the body, or no more of it
    kStopped,  // keep_running said so
  };
  std::int32_t status = 0;  // 0: no answer came
  std::map<std::string, std::string, std::less<>>
      headers;       // names in lower case; repeated ones joined by ", "
  std::string body;  // where there is no sink
  End end = End::kWhole;
  std::string failure;           // in words, without the address
  bool is_permanent = false;     // kBroken: another try would end the same way
  bool never_connected = false;  // kBroken: the host is not known or does not answer

  // Empty without it.
  std::string_view header(std::string_view name) const;
};

// Takes a body as it arrives.
struct BodySink {
  std::function<bool(const HttpResponse&)> begin;  // status and headers are there; false: no body, please
  std::function<bool(std::span<const std::byte>)> take;  // false: no more
};

// Follows no redirect, reads no .netrc, keeps its connection for the next request. Proxies come from the
// environment as libcurl reads it. An answer that stops for half a minute counts as broken.
//
// Thread safety: none; one client a thread.
class HttpClient {
 public:
  // `ca_file`: certificates to trust instead of the system's; empty: the system's. `keep_running` is called
  // several times a second during a request; false ends it.
  HttpClient(std::string ca_file, std::function<bool()> keep_running);
  HttpClient(HttpClient&&) = delete;
  ~HttpClient();

  // The whole body in memory, at most 64 MiB.
  HttpResponse perform(const HttpRequest& request);
  HttpResponse perform(const HttpRequest& request, const BodySink& sink);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string ca_file_;
  std::function<bool()> keep_running_;
};

// "https://host:443", by which two addresses are of one host; empty when the text is no http or https
// address.
std::string origin_of(const std::string& url);
// The host alone, for messages.
std::string host_of(const std::string& url);
// Where a Location or Link header leads from `base`; empty when it is no http or https address.
std::string resolve_url(const std::string& base, std::string_view reference);
// Everything but unreserved characters as %XX; slashes too unless `keep_slashes`.
std::string percent_encoded(std::string_view text, bool keep_slashes);

}  // namespace kvasir::store
