// The messages of both sides of a WebSocket: JSON, one object a message.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "server/api/field.h"
#include "server/api_error.h"
#include "server/http/message.h"
#include "server/limits.h"

namespace kvasir::server::carriers {

// {"id", "path", "body": {...}} asks what a POST of that body to that path would; {"id", "cancel": true} ends
// it.
struct ChannelMessage {
  static constexpr std::size_t kMaxIdBytes = 128;

  std::string id;  // the client's; of one request at a time
  bool cancel = false;
  std::string path;
  std::string body;
  api::Warnings warnings;  // of members beside these
};

// Errors (400): what is missing, or of another type. `id` becomes the message's, also of one that is refused
// for something else.
ApiResult<ChannelMessage> parse_channel_message(std::string_view text, const Limits& limits, std::string& id);

// {"id", "status", "headers": {...}}, with "body" for an answer in one piece. Headers of one name are joined
// as HTTP's are. An empty id is null: the message had none. Requires: the body is JSON, or empty.
std::string status_message(std::string_view id, int status, std::span<const http::Header> headers,
                           std::string_view body);
// {"id", "event": ...} of one event of a stream, which is JSON.
std::string event_message(std::string_view id, std::string_view event);
// {"id", "end": "complete"}, or how else the answer ended; nothing more comes of that id.
std::string end_message(std::string_view id, std::string_view how);

}  // namespace kvasir::server::carriers
