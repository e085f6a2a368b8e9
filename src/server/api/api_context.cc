#include "server/api/api_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace kvasir::server::api {

namespace {

// Ollama's clients write a name in any case, without its tag, or with the tag "latest".
bool is_name_of(std::string_view served, std::string_view asked) {
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto is_same = [&](char a, char b) { return lower(a) == lower(b); };
  constexpr std::string_view kLatest = ":latest";
  if (asked.ends_with(kLatest) && !served.ends_with(kLatest)) asked.remove_suffix(kLatest.size());
  if (asked.empty() || asked.size() > served.size()) return false;
  const bool is_whole_name = asked.size() == served.size() || served[asked.size()] == ':';
  return is_whole_name && std::ranges::equal(asked, served.substr(0, asked.size()), is_same);
}

}  // namespace

ApiStatus check_model(const ApiContext& context, const std::string& name) {
  if (name.empty() || is_name_of(context.model_name, name)) return {};
  return std::unexpected(ApiError{
      404,
      fmt::format("the model \"{}\" is not served here, only \"{}\"", printable(name), context.model_name),
      "model", "model_not_found"});
}

ApiStatus admit(const ApiContext& context, http::ResponseWriter& writer, std::int64_t num_prompt_tokens) {
  std::vector<http::Header> headers;
  ApiStatus admitted = context.rate_limiter.admit(writer.request().tenant, num_prompt_tokens,
                                                  http::ResponseWriter::Clock::now(), headers);
  for (http::Header& header : headers) writer.add_header(std::move(header));
  return admitted;
}

ApiStatus check_limits(const ApiContext& context, http::ResponseWriter& writer) {
  std::vector<http::Header> headers;
  ApiStatus passes =
      context.rate_limiter.check(writer.request().tenant, http::ResponseWriter::Clock::now(), headers);
  for (http::Header& header : headers) writer.add_header(std::move(header));
  return passes;
}

ApiStatus plan_answer(const http::ResponseWriter& writer, std::int64_t bytes, RequestMemory::Share& share) {
  return share.resize(bytes, body_memory_bytes(writer.request().body));
}

ApiStatus fit_context(const ApiContext& context, Request& request, std::string_view prompt_field,
                      Warnings& warnings) {
  const std::int32_t max_model_len_tokens = context.engine.model_info().max_model_len_tokens;
  if (!context.limits.are_strict) {
    const auto warning = cut_to_context(request.sampling, std::ssize(request.prompt_token_ids),
                                        max_model_len_tokens);
    if (warning) warnings.add(*warning);
  }
  return check_context(request, max_model_len_tokens, prompt_field);
}

void add_warnings(const Warnings& warnings, http::ResponseWriter& writer) {
  if (warnings.messages.empty()) return;
  writer.add_header({"X-Kvasir-Warning", fmt::format("{}", fmt::join(warnings.messages, "; "))});
}

ApiError with_unknown_field(ApiError error, const Warnings& warnings) {
  const auto unknown = std::ranges::find_if(
      warnings.messages, [](const std::string& warning) { return warning.starts_with("unknown field"); });
  if (error.code == "missing_parameter" && unknown != warnings.messages.end()) error.message += "; " + *unknown;
  return error;
}

void respond_unless(const ApiStatus& status, http::ResponseWriter& writer) {
  if (!status) writer.respond(error_response(status.error(), writer.request()));
}

}  // namespace kvasir::server::api
