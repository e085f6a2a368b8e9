// Streams as lines of JSON, which Ollama's clients read.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "server/http/event.h"

namespace kvasir::server::api {

inline http::Response json_lines_head() {
  return {.content_type = "application/x-ndjson",
          .headers = {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}}};
}

// Requires: no line break in what the event says.
inline void append_json_line(const http::Event& event, std::string& out) {
  append_without_line_breaks(event.data, out);
  out.append("\n");
}

// Its clients take every line for JSON, so there is none that says nothing.
inline constexpr http::EventEncoding kJsonLines{.head = json_lines_head, .append = append_json_line, .ping = {}};

}  // namespace kvasir::server::api
