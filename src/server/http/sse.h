// Server-sent events (WHATWG HTML, 9.2) as OpenAI's clients read them.
#pragma once

#include <string>
#include <string_view>

#include "server/http/message.h"

namespace kvasir::server {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// A comment: keeps proxies and clients patient, and every client skips it.
inline constexpr std::string_view kSsePing = ": ping\n\n";

// Requires: no line break in `data`, as in compact JSON.
inline void append_sse_event(std::string& events, std::string_view data) {
  events.append("data: ").append(data).append("\n\n");
}

// Nobody on the way may store, transform or collect the stream.
inline HttpResponse sse_head() {
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace kvasir::server
