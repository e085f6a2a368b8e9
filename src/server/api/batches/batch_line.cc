#include "server/api/batches/batch_line.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

extern const Endpoint kChatCompletions, kCompletions, kEmbeddings, kRerank, kResponses, kScore;

namespace {

constexpr std::size_t kMaxCustomIdBytes = 512;

constexpr auto kBatchEndpoints =
    std::to_array<const Endpoint*>({&kChatCompletions, &kCompletions, &kEmbeddings, &kRerank, &kResponses,
                                     &kScore});

JsonWriter& begin_line(JsonWriter& json, const std::string& id, const std::string& custom_id) {
  return json.begin_object().member("id", id).member("custom_id", custom_id);
}

// The body with a priority that is not before kBatchPriority. What is no number stays, to be refused.
std::string behind_others(JsonObject body) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  bool has_priority = false;
  for (const auto [key, value] : body) {
    json.key(key);
    const bool is_priority = key == "priority";
    has_priority |= is_priority;
    const bool is_before = is_priority && (value.is_null() || (value.is_number() && value.get_double().value() <
                                                                                       static_cast<double>(kBatchPriority)));
    is_before ? json.value(kBatchPriority) : json.raw(simdjson::minify(value));
  }
  if (!has_priority) json.member("priority", kBatchPriority);
  json.end_object();
  return text;
}

}  // namespace

const Endpoint* batch_endpoint(std::string_view path) {
  for (const Endpoint* const endpoint : kBatchEndpoints) {
    if (endpoint->pattern == path) return endpoint;
  }
  return nullptr;
}

std::string batch_endpoints_text() {
  std::string text;
  for (const Endpoint* const endpoint : kBatchEndpoints) {
    if (!text.empty()) text += ", ";
    text += endpoint->pattern;
  }
  return text;
}

ApiResult<BatchLine> parse_batch_line(std::string_view line, std::string_view endpoint, const Limits& limits) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(line, limits));
  const FieldInput root{"the line", simdjson::dom::element(), limits};
  KVASIR_TRY(const std::string custom_id, required_string(root, document.root(), "custom_id"));
  if (custom_id.empty() || custom_id.size() > kMaxCustomIdBytes) {
    return bad_request(fmt::format("custom_id must have 1 to {} bytes, has {}", kMaxCustomIdBytes, custom_id.size()),
                       "custom_id", "invalid_custom_id");
  }
  KVASIR_TRY(const std::string method, required_string(root, document.root(), "method"));
  if (method != "POST") {
    return bad_request(fmt::format("method must be POST, got {}", printable(std::string_view(method).substr(0, 32))),
                       "method", "invalid_method");
  }
  KVASIR_TRY(const std::string url, required_string(root, document.root(), "url"));
  if (url != endpoint) {
    return bad_request(fmt::format("url must be the batch's endpoint {}, got {}", endpoint,
                                   printable(std::string_view(url).substr(0, 128))),
                       "url", "mismatched_url");
  }
  KVASIR_TRY(const FieldInput body, required_member(root, document.root(), "body"));
  KVASIR_TRY(const JsonObject object, object_of(body));
  return BatchLine{custom_id, behind_others(object)};
}

std::string answered_line(const std::string& id, const std::string& custom_id, int status,
                          const std::string& request_id, std::string_view body) {
  std::string line;
  JsonWriter json(line);
  begin_line(json, id, custom_id).key("response").begin_object().member("status_code", status);
  json.member("request_id", request_id).key("body").raw(body).end_object().member_null("error").end_object();
  return line + "\n";
}

std::string unasked_line(const std::string& id, const std::string& custom_id, std::string_view code,
                         std::string_view message) {
  std::string line;
  JsonWriter json(line);
  begin_line(json, id, custom_id).member_null("response").key("error").begin_object();
  json.member("code", code).member("message", message).end_object().end_object();
  return line + "\n";
}

std::optional<std::string> LineFeed::next() {
  for (;;) {
    const std::size_t end = rest_.find('\n', taken_);
    if (end == rest_.npos && (!has_ended_ || taken_ == rest_.size())) {
      rest_.erase(0, std::exchange(taken_, 0));
      return std::nullopt;
    }
    std::string line = rest_.substr(taken_, end == rest_.npos ? end : end - taken_);
    taken_ = end == rest_.npos ? rest_.size() : end + 1;
    ++number_;
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != line.npos) return line;
  }
}

}  // namespace kvasir::server::api
