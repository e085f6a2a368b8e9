// The bytes before a body.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace kvasir::server::http {

enum class BodyFraming : std::uint8_t {
  kLength,      // the whole body is in the response
  kChunked,     // pieces follow, each through http_chunk()
  kUntilClose,  // pieces follow as they are; for HTTP/1.0
  kCounted,     // the same, and a header of the response says how long they are together
};

// Status line and headers, `extra` after the response's own. No value can break out of its line: control
// characters become spaces.
std::string response_head(const Response& response, std::span<const Header> extra, BodyFraming framing,
                          bool keep_alive);

// One chunk of the chunked coding (RFC 9112, 7.1). An empty piece gives nothing, as it would end the body.
std::string http_chunk(std::string_view piece);
inline constexpr std::string_view kLastHttpChunk = "0\r\n\r\n";

}  // namespace kvasir::server::http
