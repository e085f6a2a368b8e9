// Where an HTTP connection becomes a WebSocket (RFC 6455, 4).
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>

#include "server/http/upgrade.h"

namespace kvasir::server::carriers {

// Thread safety: immutable.
class WebSocketUpgrade final : public http::Upgrade {
 public:
  bool takes(const http::Request& handshake) const override;
  void begin(http::Connection connection, http::ConnectionCounter::Slot slot, std::string early,
             http::Request handshake, const http::SessionContext& context) const override;
};

// The request as Beast reads it.
boost::beast::http::request<boost::beast::http::empty_body> beast_request(const http::Request& request);

}  // namespace kvasir::server::carriers
