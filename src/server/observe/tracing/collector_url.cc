#include "server/observe/tracing/collector_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::observe {
namespace {

// Shows nothing of the text that may be a key: a user, or a query.
std::unexpected<Error> bad_url(std::string_view wanted, std::string_view text) {
  std::string message(wanted);
  if (text.find('@') == text.npos) {
    message += fmt::format(", got '{}'", printable(text.substr(0, text.find('?'))));
  }
  return make_error(ErrorKind::kUsage, std::move(message));
}

// Takes "name:", "[v6]:port" or the like apart; false where it is none.
bool read_authority(std::string_view text, CollectorUrl& url) {
  std::size_t host_end = text.find(':');
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == text.npos) return false;
    url.host = text.substr(1, bracket - 1);
    host_end = bracket + 1 < text.size() ? bracket + 1 : text.npos;
    if (host_end != text.npos && text[host_end] != ':') return false;
  } else {
    url.host = text.substr(0, host_end);
  }
  url.port = url.is_https ? 443 : 80;
  if (host_end != text.npos) {
    const std::string_view digits = text.substr(host_end + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (error != std::errc() || end != digits.data() + digits.size() || url.port == 0) return false;
  }
  return !url.host.empty();
}

}  // namespace

std::string CollectorUrl::authority() const {
  const bool is_v6 = host.find(':') != host.npos;
  const std::string name = is_v6 ? fmt::format("[{}]", host) : host;
  return port == (is_https ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

std::string CollectorUrl::shown() const {
  return fmt::format("{}://{}{}", is_https ? "https" : "http", authority(),
                     printable_line(target.substr(0, target.find('?'))));
}

Result<CollectorUrl> parse_collector_url(std::string_view text, UrlUse use) {
  CollectorUrl url;
  const std::size_t colon = text.find("://");
  const std::string scheme(text.substr(0, colon == text.npos ? 0 : colon));
  url.is_https = boost::beast::iequals(scheme, "https");
  if (!url.is_https && !boost::beast::iequals(scheme, "http")) {
    return bad_url("takes a URL that begins with http:// or https://", text);
  }
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != '#'; });
  if (!is_plain) return bad_url("takes a URL of printable ASCII without spaces and #", text);
  const std::string_view rest = text.substr(colon + 3);
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, path);
  if (authority.find('@') != authority.npos) {
    return bad_url("takes a URL without a user; a key belongs into OTEL_EXPORTER_OTLP_HEADERS", text);
  }
  if (!read_authority(authority, url))
    return bad_url("takes a URL with a host, and a port from 1 to 65535", text);
  url.target = rest.substr(path);
  if (use == UrlUse::kBase) {
    if (url.target.find('?') != url.target.npos) {
      return bad_url("takes a URL without a query, because /v1/traces goes behind it", text);
    }
    while (url.target.ends_with('/')) url.target.pop_back();
    url.target += "/v1/traces";
  } else if (!url.target.starts_with('/')) {
    url.target.insert(0, "/");
  }
  return url;
}

}  // namespace kvasir::server::observe
