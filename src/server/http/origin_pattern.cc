#include "server/http/origin_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::http {
namespace {

constexpr std::string_view kNoDefaults = "none";
// Loopback, and schemes that only programs of this machine have.
constexpr auto kDefaultOrigins = std::to_array<std::string_view>(
    {"http://localhost:*", "https://localhost:*", "http://*.localhost:*", "https://*.localhost:*",
     "http://127.0.0.1:*", "https://127.0.0.1:*", "http://0.0.0.0:*", "http://[::1]:*", "https://[::1]:*",
     "app://*", "tauri://*", "vscode-webview://*", "vscode-file://*", "capacitor://localhost",
     "ionic://localhost", "wails://*", "wails://*:*", "file://*"});

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

struct OriginParts {
  std::string_view scheme, host, port;
};

// Empty parts where there are none.
OriginParts split_origin(std::string_view origin) {
  OriginParts parts;
  const std::size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return parts;
  parts.scheme = origin.substr(0, scheme_end);
  const std::string_view rest = origin.substr(scheme_end + 3);
  const std::size_t host_end = rest.starts_with('[') ? rest.find(']') : rest.find(':');
  if (host_end == std::string_view::npos) {
    parts.host = rest;
    return parts;
  }
  const std::size_t port = host_end + (rest[host_end] == ']' ? 1 : 0);
  parts.host = rest.substr(0, port);
  if (rest.substr(port).starts_with(':')) parts.port = rest.substr(port + 1);
  return parts;
}

// Browsers leave the scheme's own port out of an origin.
std::string_view without_own_port(std::string_view scheme, std::string_view port) {
  const bool is_own = (scheme == "http" && port == "80") || (scheme == "https" && port == "443");
  return is_own ? std::string_view() : port;
}

std::unexpected<Error> matches_nothing(std::string_view text, std::string_view why) {
  return make_error(ErrorKind::kUsage,
                    fmt::format("--cors-origin: no page has the origin {}: {}", printable_line(text), why),
                    "cors-origin");
}

bool is_port(std::string_view port) {
  return port == "*" || (port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos);
}

bool is_host(std::string_view host) {
  const std::string_view name = host.starts_with("*.") ? host.substr(2) : host;
  if (host == "*") return true;
  if (host.starts_with('[') && host.ends_with(']')) {
    return host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
  }
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace

Result<OriginPattern> OriginPattern::parse(std::string_view text) {
  OriginPattern pattern;
  if (text == "*" || text == "null") {
    pattern.scheme_ = text;
    return pattern;
  }
  const std::string lower = lower_case(text);
  const OriginParts parts = split_origin(lower);
  if (parts.scheme.empty())
    return matches_nothing(text, "it begins with a scheme, as in https://chat.example");
  constexpr std::string_view kSchemeLetters = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
  if (parts.scheme.find_first_not_of(kSchemeLetters) != std::string_view::npos)
    return matches_nothing(text, "a scheme has letters, digits, + - and . only");
  if (lower.find('/', parts.scheme.size() + 3) != std::string::npos)
    return matches_nothing(text, "an origin ends before the path's first /");
  if (!is_host(parts.host)) {
    return matches_nothing(text, "its host is a name, an address, *.NAME or *");
  }
  const bool ends_with_colon = lower.ends_with(':');
  if (ends_with_colon || !is_port(parts.port)) return matches_nothing(text, "its port is a number or *");
  pattern.scheme_ = parts.scheme;
  pattern.host_ = parts.host;
  pattern.port_ = without_own_port(parts.scheme, parts.port);
  return pattern;
}

bool OriginPattern::matches(std::string_view origin) const {
  if (matches_all()) return true;
  const std::string lower = lower_case(origin);
  if (scheme_ == "null") return lower == "null";
  const OriginParts parts = split_origin(lower);
  const bool has_no_host = parts.host.empty() && scheme_ != "file";  // file:// is whole, of programs built on browsers
  if (parts.scheme != scheme_ || has_no_host) return false;
  if (port_ != "*" && without_own_port(parts.scheme, parts.port) != port_) return false;
  if (host_ == "*") return true;
  return host_.starts_with("*.")
             ? parts.host.ends_with(std::string_view(host_).substr(1)) && parts.host.size() >= host_.size()
             : parts.host == host_;
}

Result<std::vector<OriginPattern>> parse_origin_patterns(std::span<const std::string> texts) {
  std::vector<OriginPattern> patterns;
  if (std::ranges::find(texts, kNoDefaults) == texts.end()) {
    for (const std::string_view text : kDefaultOrigins) {
      KVASIR_TRY(OriginPattern pattern, OriginPattern::parse(text));
      patterns.push_back(std::move(pattern));
    }
  }
  for (const std::string& text : texts) {
    if (text == kNoDefaults) continue;
    KVASIR_TRY(OriginPattern pattern, OriginPattern::parse(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

}  // namespace kvasir::server::http
