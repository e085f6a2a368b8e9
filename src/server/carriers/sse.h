// Server-sent events (WHATWG HTML, 9.2) as OpenAI's clients read them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace kvasir::server::carriers {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// A comment: keeps proxies and clients patient, and every client skips it.
inline constexpr std::string_view kSsePing = ": ping\n\n";

// Requires: no line break in `data`, as in compact JSON.
inline void append_sse_event(std::string& events, std::string_view data) {
  events.append("data: ").append(data).append("\n\n");
}

// Calls `take` with the data of each event in a piece of whole ones; comments and what ends a stream are
// none.
template <class Take>
void for_each_sse_event(std::string_view piece, Take take) {
  constexpr std::string_view kData = "data: ", kDone = "[DONE]";
  while (!piece.empty()) {
    const std::string_view line = piece.substr(0, piece.find('\n'));
    piece.remove_prefix(std::min(piece.size(), line.size() + 1));
    if (line.starts_with(kData) && line.substr(kData.size()) != kDone) take(line.substr(kData.size()));
  }
}

// Nobody on the way may store, transform or collect the stream.
inline http::Response sse_head() {
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace kvasir::server::carriers
