#include "server/api/api_context.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace kvasir::server {

ApiStatus check_model(const ApiContext& context, const std::string& name) {
  if (name.empty() || name == context.model_name) return {};
  return std::unexpected(ApiError{
      404,
      fmt::format("the model \"{}\" is not served here, only \"{}\"", printable(name), context.model_name),
      "model", "model_not_found"});
}

void add_warnings(const Warnings& warnings, Exchange& exchange) {
  if (warnings.messages.empty()) return;
  exchange.add_header({"X-Kvasir-Warning", fmt::format("{}", fmt::join(warnings.messages, "; "))});
}

void respond_unless(const ApiStatus& status, Exchange& exchange) {
  if (!status) exchange.respond(error_response(status.error(), exchange.request()));
}

}  // namespace kvasir::server
