#include "server/api/batches/batch_request.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/printable.h"
#include "server/api/batches/batch_line.h"

namespace kvasir::server::api {
namespace {

constexpr std::int64_t kLeastWindowSeconds = 60, kMostWindowSeconds = 30 * 86'400;

ApiStatus read_batch_endpoint(const FieldInput& field, BatchRequest& request) {
  KVASIR_TRY(request.endpoint, string_of(field));
  if (batch_endpoint(request.endpoint) != nullptr) return {};
  return bad_request(fmt::format("endpoint must be one of {}, got '{}'", batch_endpoints_text(),
                                 printable(std::string_view(request.endpoint).substr(0, 128))),
                     "endpoint");
}

// A number and its unit: "24h".
ApiStatus read_window(const FieldInput& field, BatchRequest& request) {
  KVASIR_TRY(request.completion_window, string_of(field));
  const std::string& text = request.completion_window;
  std::int64_t count = 0;
  const auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool has_unit = error == std::errc() && unit == text.data() + text.size() - 1;
  const std::int64_t seconds = !has_unit      ? 0
                               : *unit == 'm' ? 60
                               : *unit == 'h' ? 3600
                               : *unit == 'd' ? 86'400
                                              : 0;
  if (seconds > 0 && count > 0 && count <= kMostWindowSeconds / seconds) request.window_s = count * seconds;
  if (request.window_s >= kLeastWindowSeconds) return {};
  return bad_request(fmt::format("completion_window must be like 24h, from 1m to 30d, got '{}'",
                                 printable(std::string_view(text).substr(0, 32))),
                     "completion_window");
}

ApiStatus read_batch_metadata(const FieldInput& field, BatchRequest& request) {
  KVASIR_TRY(const JsonObject metadata, object_of(field));
  request.metadata_json = simdjson::minify(metadata);
  return {};
}

constexpr auto kBatchFields = std::to_array<Field<BatchRequest>>({
    {"input_file_id", "string", {}, "a file with the purpose \"batch\"", read_string<&BatchRequest::input_file_id>},
    {"endpoint",
     "string",
     {},
     "/v1/chat/completions, /v1/completions, /v1/embeddings, /v1/rerank, /v1/responses or /v1/score: that of every line",
     read_batch_endpoint},
    {"completion_window", "string", {}, "how long it may take, from 1m to 30d; OpenAI's is 24h", read_window},
    {"metadata", "object", {}, "comes back with the batch", read_batch_metadata},
    {"output_expires_after",
     "object",
     {},
     "left out: a file leaves when its room is needed",
     read_ignored<BatchRequest>},
});

}  // namespace

std::span<const Field<BatchRequest>> batch_fields() { return kBatchFields; }

ApiResult<BatchRequest> parse_batch_request(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  BatchRequest request;
  KVASIR_CHECKED(
      read_fields(document.root(), std::span<const Field<BatchRequest>>(), batch_fields(), limits, request, warnings));
  for (const auto& [name, value] : {std::pair("input_file_id", &request.input_file_id),
                                    std::pair("endpoint", &request.endpoint),
                                    std::pair("completion_window", &request.completion_window)}) {
    if (value->empty()) return bad_request(fmt::format("{} is missing", name), name, "missing_parameter");
  }
  return request;
}

}  // namespace kvasir::server::api
