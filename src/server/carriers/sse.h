// Server-sent events (WHATWG HTML, 9.2) as OpenAI's and Anthropic's clients read them.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "server/http/event.h"

namespace kvasir::server::carriers {

// Nobody on the way may store, transform or collect the stream.
inline http::Response sse_head() {
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}}};
}

// Requires: no line break in what the event says.
inline void append_sse(const http::Event& event, std::string& out) {
  if (!event.name.empty()) out.append("event: ").append(event.name).append("\n");
  out.append("data: ");
  append_without_line_breaks(event.data, out);
  out.append("\n\n");
}

// The ping is a comment: it keeps proxies and clients patient, and every client skips it.
inline constexpr http::EventEncoding kServerSentEvents{
    .head = sse_head, .append = append_sse, .ping = ": ping\n\n"};

}  // namespace kvasir::server::carriers
