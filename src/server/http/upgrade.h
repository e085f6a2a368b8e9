// Another protocol that a connection may go on with (RFC 9110, 7.8).
#pragma once

#include <string>

#include "server/http/connection.h"
#include "server/http/connection_counter.h"
#include "server/http/message.h"

namespace kvasir::server::http {

struct SessionContext;

// Thread safety: immutable.
class Upgrade {
 public:
  virtual ~Upgrade() = default;

  virtual bool takes(const Request& handshake) const = 0;
  // Answers the handshake and has the connection from then on. `early`: what came behind the handshake.
  virtual void begin(Connection connection, ConnectionCounter::Slot slot, std::string early,
                     Request handshake, const SessionContext& context) const = 0;
};

}  // namespace kvasir::server::http
