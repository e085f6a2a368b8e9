// Where an HTTP connection becomes a WebSocket (RFC 6455, 4).
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>

#include "server/http/exchange.h"
#include "server/http/message.h"

namespace kvasir::server {

bool is_websocket_upgrade(const HttpRequest& request);

// The request as Beast reads it.
boost::beast::http::request<boost::beast::http::empty_body> beast_request(const HttpRequest& request);

// Answers whoever asks for the path without asking for a WebSocket.
void handle_no_upgrade(Exchange& exchange);

}  // namespace kvasir::server
