#include "server/api/admin/operators.h"

namespace kvasir::server::api {

ApiStatus check_operator(const http::ResponseWriter& writer) {
  if (writer.request().tenant.is_operator) return {};
  return std::unexpected(ApiError{403, "this needs an operator's key (kvasir keys add --operator)", {}, "not_allowed"});
}

}  // namespace kvasir::server::api
