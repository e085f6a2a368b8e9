#include "server/api/batches/batch.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "base/json_writer.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {
namespace {

constexpr auto kTimes = std::to_array<std::string_view>(
    {"created_at", "in_progress_at", "expires_at", "finalizing_at", "completed_at", "failed_at", "expired_at",
     "cancelling_at", "cancelled_at"});

void write_errors(JsonWriter& json, const std::vector<BatchError>& errors) {
  json.key("errors");
  if (errors.empty()) return void(json.null());
  json.begin_object().member("object", "list").key("data").begin_array();
  for (const BatchError& error : errors) {
    json.begin_object().member("code", error.code).member("message", error.message).member_null("param").key("line");
    error.line == 0 ? json.null() : json.value(error.line);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_file_id(JsonWriter& json, std::string_view name, bool is_there, const std::string& id) {
  json.key(name);
  is_there ? json.value(id) : json.null();
}

std::string text_of(JsonObject object, std::string_view name) {
  const auto member = find_member(object, name);
  return member && member->is_string() ? std::string(member->get_string().value()) : std::string();
}

}  // namespace

std::string batch_json(const Batch& batch) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("id", batch.id).member("object", "batch").member("endpoint", batch.endpoint);
  write_errors(json, batch.errors);
  json.member("input_file_id", batch.input_file_id).member("completion_window", batch.completion_window);
  json.member("status", batch.status);
  write_file_id(json, "output_file_id", batch.has_output, batch.output_file_id());
  write_file_id(json, "error_file_id", batch.has_errors, batch.error_file_id());
  for (const std::string_view name : kTimes) {
    json.key(name);
    const auto time = batch.times.find(std::string(name));
    time == batch.times.end() ? json.null() : json.value(time->second);
  }
  json.key("request_counts").begin_object().member("total", batch.num_total);
  json.member("completed", batch.num_completed).member("failed", batch.num_failed).end_object();
  json.key("metadata").raw(batch.metadata_json).end_object();
  return body;
}

stored::Object batch_object(const Batch& batch, bool is_pinned) {
  return {.kind = stored::Kind::kBatch,
          .id = batch.id,
          .owner = batch.tenant.key_id,
          .parent = fmt::format("{} {} {}", batch.tenant.limits.requests_per_minute,
                                batch.tenant.limits.tokens_per_minute, batch.tenant.name),
          .created_s = batch.times.at("created_at"),
          .is_pinned = is_pinned,
          .json = batch_json(batch)};
}

ApiResult<Batch> batch_of(const stored::Object& object, const Limits& limits) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(object.json, limits));
  const JsonObject root = document.root();
  Batch batch{.id = object.id,
              .endpoint = text_of(root, "endpoint"),
              .input_file_id = text_of(root, "input_file_id"),
              .completion_window = text_of(root, "completion_window"),
              .status = text_of(root, "status")};
  if (const auto metadata = find_member(root, "metadata")) batch.metadata_json = simdjson::minify(*metadata);
  batch.times = {{"created_at", object.created_s}, {"expires_at", object.created_s}};
  for (const std::string_view name : kTimes) {
    const auto time = find_member(root, name);
    if (time && time->is_int64()) batch.times[std::string(name)] = time->get_int64().value();
  }
  if (const auto counts = find_member(root, "request_counts"); counts && counts->is_object()) {
    const auto total = find_member(counts->get_object().value(), "total");
    if (total && total->is_int64()) batch.num_total = total->get_int64().value();
    const auto completed = find_member(counts->get_object().value(), "completed");
    if (completed && completed->is_int64()) batch.num_completed = completed->get_int64().value();
    const auto failed = find_member(counts->get_object().value(), "failed");
    if (failed && failed->is_int64()) batch.num_failed = failed->get_int64().value();
  }
  batch.has_output = !text_of(root, "output_file_id").empty();
  batch.has_errors = !text_of(root, "error_file_id").empty();
  std::istringstream tenant(object.parent);
  tenant >> batch.tenant.limits.requests_per_minute >> batch.tenant.limits.tokens_per_minute >> batch.tenant.name;
  batch.tenant.key_id = object.owner;
  batch.tenant.is_operator = false;
  return batch;
}

}  // namespace kvasir::server::api
