#include "store/hub/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "base/printable.h"

namespace kvasir::store {
namespace {

constexpr long kConnectTimeoutS = 20;
constexpr long kStallTimeoutS = 30;
constexpr std::size_t kMostBodyBytes = std::size_t{64} << 20;
constexpr long kReceiveBytes = 256 << 10;
constexpr std::size_t kMostHeaders = 200;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using ParsedUrl = std::unique_ptr<CURLU, FreeUrl>;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// Null: no http or https address.
ParsedUrl parse_url(const std::string& base, const std::string& reference) {
  ParsedUrl url(curl_url());
  CHECK(url != nullptr);
  if (!base.empty() && curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK) return nullptr;
  if (curl_url_set(url.get(), CURLUPART_URL, reference.c_str(), 0) != CURLUE_OK) return nullptr;
  return url;
}

std::string url_part(const ParsedUrl& url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string result = text;
  curl_free(text);
  return result;
}

bool is_http(const ParsedUrl& url) {
  const std::string scheme = url_part(url, CURLUPART_SCHEME, 0);
  return scheme == "http" || scheme == "https";
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return lower;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// A request while it runs.
struct Exchange {
  CURL* curl;
  const BodySink* sink;
  const std::function<bool()>& keep_running;
  HttpResponse response;
  bool has_begun = false;
  bool is_refused = false;
  bool is_stopped = false;

  bool take(std::span<const std::byte> bytes) {
    if (!has_begun) {
      has_begun = true;
      long status = 0;
      curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
      response.status = static_cast<std::int32_t>(status);
      if (sink != nullptr && !sink->begin(response)) return false;
    }
    if (sink != nullptr) return sink->take(bytes);
    if (response.body.size() + bytes.size() > kMostBodyBytes) return false;
    response.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (exchange.take(std::as_bytes(std::span(data, size * count)))) return size * count;
  exchange.is_refused = true;
  return CURL_WRITEFUNC_ERROR;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* context) {
  HttpResponse& response = static_cast<Exchange*>(context)->response;
  const std::string_view line(data, size * count);
  // An interim answer (100, 103) came before.
  if (line.starts_with("HTTP/")) response.headers.clear();
  const std::size_t colon = line.find(':');
  if (colon == line.npos || response.headers.size() >= kMostHeaders) return line.size();
  std::string& value = response.headers[lower_case(line.substr(0, colon))];
  if (!value.empty()) value += ", ";
  value += without_blanks(line.substr(colon + 1));
  return line.size();
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& exchange = *static_cast<Exchange*>(context);
  exchange.is_stopped = exchange.is_stopped || !exchange.keep_running();
  return exchange.is_stopped ? 1 : 0;
}

bool is_one_of(CURLcode code, std::initializer_list<CURLcode> codes) {
  return std::ranges::find(codes, code) != codes.end();
}

void note_failure(CURLcode code, const char* words, HttpResponse& response) {
  response.end = HttpResponse::End::kBroken;
  response.failure = printable(*words != '\0' ? words : curl_easy_strerror(code), 200);
  response.is_permanent = is_one_of(
      code, {CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_PEER_FAILED_VERIFICATION,
             CURLE_SSL_CACERT_BADFILE, CURLE_OUT_OF_MEMORY});
  response.never_connected = is_one_of(
      code, {CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT});
}

}  // namespace

struct HttpClient::Handle {
  CURL* curl = nullptr;
  char failure[CURL_ERROR_SIZE] = {};

  void set(CURLoption option, auto value) { CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK); }
};

std::string_view HttpResponse::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

HttpClient::HttpClient(std::string ca_file, std::function<bool()> keep_running)
    : handle_(std::make_unique<Handle>()),
      ca_file_(std::move(ca_file)),
      keep_running_(std::move(keep_running)) {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(global == CURLE_OK);
  handle_->curl = curl_easy_init();
  CHECK(handle_->curl != nullptr);
}

HttpClient::~HttpClient() { curl_easy_cleanup(handle_->curl); }

HttpResponse HttpClient::perform(const HttpRequest& request) { return perform(request, {}); }

HttpResponse HttpClient::perform(const HttpRequest& request, const BodySink& sink) {
  Handle& handle = *handle_;
  Exchange exchange{handle.curl, sink.take ? &sink : nullptr, keep_running_, {}};
  curl_easy_reset(handle.curl);  // connections stay
  handle.failure[0] = '\0';
  handle.set(CURLOPT_URL, request.url.c_str());
  handle.set(CURLOPT_PROTOCOLS_STR, "http,https");
  handle.set(CURLOPT_NOSIGNAL, 1L);
  handle.set(CURLOPT_USERAGENT, "kvasir");
  handle.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  handle.set(CURLOPT_CONNECTTIMEOUT, kConnectTimeoutS);
  handle.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  handle.set(CURLOPT_LOW_SPEED_TIME, kStallTimeoutS);
  handle.set(CURLOPT_BUFFERSIZE, kReceiveBytes);
  handle.set(CURLOPT_ERRORBUFFER, handle.failure);
  handle.set(CURLOPT_WRITEFUNCTION, on_body);
  handle.set(CURLOPT_WRITEDATA, &exchange);
  handle.set(CURLOPT_HEADERFUNCTION, on_header);
  handle.set(CURLOPT_HEADERDATA, &exchange);
  handle.set(CURLOPT_XFERINFOFUNCTION, on_progress);
  handle.set(CURLOPT_XFERINFODATA, &exchange);
  handle.set(CURLOPT_NOPROGRESS, 0L);
  handle.set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  if (!request.range.empty()) handle.set(CURLOPT_RANGE, request.range.c_str());
  if (!ca_file_.empty()) handle.set(CURLOPT_CAINFO, ca_file_.c_str());
  curl_slist* list = curl_slist_append(nullptr, "Accept-Encoding: identity");
  if (!request.bearer_token.empty()) {
    list = curl_slist_append(list, ("Authorization: Bearer " + request.bearer_token).c_str());
  }
  const std::unique_ptr<curl_slist, FreeList> headers(list);
  handle.set(CURLOPT_HTTPHEADER, headers.get());

  const CURLcode code = curl_easy_perform(handle.curl);
  HttpResponse response = std::move(exchange.response);
  long status = 0;
  curl_easy_getinfo(handle.curl, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<std::int32_t>(status);
  if (exchange.is_stopped) {
    response.end = HttpResponse::End::kStopped;
  } else if (exchange.is_refused) {
    response.end = HttpResponse::End::kRefused;
  } else if (code != CURLE_OK) {
    note_failure(code, handle.failure, response);
  } else if (exchange.sink != nullptr && !exchange.has_begun && !sink.begin(response)) {
    response.end = HttpResponse::End::kRefused;  // an answer without a body
  }
  return response;
}

std::string origin_of(const std::string& url) {
  const ParsedUrl parsed = parse_url({}, url);
  if (!parsed || !is_http(parsed)) return {};
  return fmt::format("{}://{}:{}", url_part(parsed, CURLUPART_SCHEME, 0),
                     lower_case(url_part(parsed, CURLUPART_HOST, 0)),
                     url_part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

std::string host_of(const std::string& url) {
  const ParsedUrl parsed = parse_url({}, url);
  return parsed ? printable(url_part(parsed, CURLUPART_HOST, 0)) : "an unknown host";
}

std::string resolve_url(const std::string& base, std::string_view reference) {
  const ParsedUrl parsed = parse_url(base, std::string(reference));
  return parsed && is_http(parsed) ? url_part(parsed, CURLUPART_URL, 0) : std::string();
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && keep_slashes);
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace kvasir::store
