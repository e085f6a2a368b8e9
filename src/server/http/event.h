// One event of a streamed response, as an API says it, before a carrier does: as text over HTTP, as a message
// over a WebSocket or gRPC.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace kvasir::server::http {

struct Event {
  enum class Kind : std::uint8_t {
    kData,
    kFailure,  // why the stream ends before it is complete
    kEnd,      // the mark by which clients of SSE know the end; other carriers have an end of their own
  };

  std::string data;       // compact JSON, so without line breaks; of kEnd what its clients look for
  std::string name = {};  // the type that clients of SSE listen to; empty: none
  Kind kind = Kind::kData;
};

using Events = std::vector<Event>;

// How HTTP carries events.
struct EventEncoding {
  Response (*head)();
  void (*append)(const Event& event, std::string& out);
  std::string_view ping;  // says nothing, so that nobody takes the stream for dead; empty: there is no such thing
};

}  // namespace kvasir::server::http
