// Where traces go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::server::observe {

struct CollectorUrl {
  bool is_https = false;
  std::string host;  // an IPv6 address without brackets
  std::uint16_t port = 0;
  std::string target;  // path and query

  // As in a Host header.
  std::string authority() const;
  // For people: without the query, which may hold a key.
  std::string shown() const;
};

// How much of the URL is given. Source: OpenTelemetry Protocol Exporter.
enum class UrlUse : std::uint8_t {
  kBase,  // of all signals: /v1/traces goes behind it
  kAsIs,
};

// Error: kUsage, what is wrong in words that go behind the name of the setting. A user in the URL is refused:
// it would be a key where everybody sees it.
Result<CollectorUrl> parse_collector_url(std::string_view text, UrlUse use);

}  // namespace kvasir::server::observe
