#include "server/openai/api_context.h"

#include <fmt/format.h>

#include <ctime>

#include "base/printable.h"

namespace kvasir::server {

ApiStatus check_model(const ApiContext& context, const std::string& name) {
  if (name.empty() || name == context.model_name) return {};
  return std::unexpected(ApiError{
      404,
      fmt::format("the model \"{}\" is not served here, only \"{}\"", printable(name), context.model_name),
      "model", "model_not_found"});
}

AnswerHeader make_answer_header(ApiContext& context, const GenerationRequest& request,
                                std::string_view id_prefix) {
  return {.id = context.ids.next(id_prefix),
          .created_s = static_cast<std::int64_t>(std::time(nullptr)),
          .model = context.model_name,
          .fingerprint = context.fingerprint,
          .include_usage = request.include_usage,
          .usage_in_every_chunk = request.usage_in_every_chunk};
}

void add_warnings(const Warnings& warnings, Exchange& exchange) {
  if (warnings.messages.empty()) return;
  exchange.add_header({"X-Kvasir-Warning", fmt::format("{}", fmt::join(warnings.messages, "; "))});
}

void respond_unless(const ApiStatus& status, Exchange& exchange) {
  if (!status) exchange.respond(error_response(status.error(), exchange.request()));
}

}  // namespace kvasir::server
