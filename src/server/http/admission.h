// Decides whom a request is served for. Connections do not know how.
#pragma once

#include "server/api_error.h"
#include "server/http/message.h"

namespace kvasir::server::http {

// Thread safety: admit() may be called from any thread.
class Admission {
 public:
  virtual ~Admission() = default;

  // Whom the request is served for, without a key id where none is needed. Error: 401.
  virtual ApiResult<auth::Tenant> admit(const Request& request) = 0;
  // Whether the key of a tenant that was admitted is still valid, or none was needed. May be called from any thread.
  virtual bool admits_still(const auth::Tenant& tenant) = 0;
};

}  // namespace kvasir::server::http
