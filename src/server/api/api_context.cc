#include "server/api/api_context.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/printable.h"

namespace kvasir::server {

ApiStatus check_model(const ApiContext& context, const std::string& name) {
  if (name.empty() || name == context.model_name) return {};
  return std::unexpected(ApiError{
      404,
      fmt::format("the model \"{}\" is not served here, only \"{}\"", printable(name), context.model_name),
      "model", "model_not_found"});
}

ApiStatus admit(const ApiContext& context, Exchange& exchange, std::int64_t num_prompt_tokens) {
  std::vector<Header> headers;
  ApiStatus admitted = context.rate_limiter.admit(exchange.request().tenant, num_prompt_tokens,
                                                  Exchange::Clock::now(), headers);
  for (Header& header : headers) exchange.add_header(std::move(header));
  return admitted;
}

ApiStatus check_limits(const ApiContext& context, Exchange& exchange) {
  std::vector<Header> headers;
  ApiStatus passes = context.rate_limiter.check(exchange.request().tenant, Exchange::Clock::now(), headers);
  for (Header& header : headers) exchange.add_header(std::move(header));
  return passes;
}

ApiStatus plan_answer(const Exchange& exchange, std::int64_t bytes, RequestMemory::Share& share) {
  return share.resize(bytes, body_memory_bytes(exchange.request().body));
}

void add_warnings(const Warnings& warnings, Exchange& exchange) {
  if (warnings.messages.empty()) return;
  exchange.add_header({"X-Kvasir-Warning", fmt::format("{}", fmt::join(warnings.messages, "; "))});
}

void respond_unless(const ApiStatus& status, Exchange& exchange) {
  if (!status) exchange.respond(error_response(status.error(), exchange.request()));
}

}  // namespace kvasir::server
