// Where an HTTP connection becomes a WebSocket (RFC 6455, 4).
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>

#include "server/http/message.h"
#include "server/http/response_writer.h"

namespace kvasir::server::carriers {

bool is_websocket_upgrade(const http::Request& request);

// The request as Beast reads it.
boost::beast::http::request<boost::beast::http::empty_body> beast_request(const http::Request& request);

// Answers whoever asks for the path without asking for a WebSocket.
void handle_no_upgrade(http::ResponseWriter& writer);

}  // namespace kvasir::server::carriers
