#include "server/api/api_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "server/api/model_name.h"
#include "server/api/served_models.h"

namespace kvasir::server::api {

std::string served_names(const ApiContext& context) {
  if (context.models == nullptr) return fmt::format("\"{}\"", context.model_name);
  constexpr std::size_t kMostShown = 4;
  std::string names;
  const std::vector<std::size_t> models = context.models->indices();
  for (std::size_t i = 0; i < std::min(models.size(), kMostShown); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", context.models->model(models[i]).name);
  }
  if (models.size() > kMostShown) names += fmt::format(" and {} others", models.size() - kMostShown);
  return names;
}

std::vector<const ApiContext*> contexts_of_models(const ApiContext& context) {
  if (context.models == nullptr) return {&context};
  std::vector<const ApiContext*> contexts;
  for (const std::size_t i : context.models->indices()) contexts.push_back(&context.models->context(i));
  return contexts;
}

std::string adapter_of(const ApiContext& context, std::string_view name) {
  const AdapterNames adapters = context.engine.adapters();
  const auto found = std::ranges::find_if(*adapters, [name](const std::string& adapter) { return is_name_of(adapter, name); });
  return found == adapters->end() ? std::string() : *found;
}

std::string answering_name(const ApiContext& context, const GenerationRequest& request) {
  std::string adapter = adapter_of(context, request.model);
  return adapter.empty() ? context.model_name : adapter;
}

bool serves_name(const ApiContext& context, std::string_view name) {
  if (name.empty() || context.takes_any_name) return true;
  if (!adapter_of(context, name).empty()) return true;
  if (context.models != nullptr) {
    const std::size_t index = context.models->find(name);
    return index != ServedModels::npos && &context.models->context(index) == &context;
  }
  return is_name_of(context.model_name, name);
}

ApiStatus check_model(const ApiContext& context, const std::string& name) {
  if (serves_name(context, name)) return {};
  return std::unexpected(ApiError{
      404,
      fmt::format("the model \"{}\" is not served here, only {} (--any-model-name: all names are)", printable(name),
                  served_names(context)),
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

namespace {

// Ids of another vocabulary weigh and stop nothing; llama-server passes over them, and Ollama over the field.
void leave_out_foreign_tokens(SamplingParams& sampling, std::int32_t vocab_size, Warnings& warnings) {
  const auto is_foreign = [vocab_size](TokenId token) { return token >= vocab_size; };
  const auto warn = [&](std::string_view field, std::size_t count) {
    if (count == 0) return;
    warnings.add(fmt::format("{}: left out are {} ids beyond the vocabulary of {} tokens", field, count, vocab_size));
  };
  warn("logit_bias", std::erase_if(sampling.logit_bias, [&](const auto& bias) { return is_foreign(bias.first); }));
  warn("stop_token_ids", std::erase_if(sampling.stop_token_ids, is_foreign));
}

}  // namespace

ApiStatus fit_context(const ApiContext& context, Request& request, std::string_view prompt_field,
                      Warnings& warnings) {
  const std::int32_t max_model_len_tokens = context.engine.model_info().max_model_len_tokens;
  if (!context.limits.are_strict) {
    leave_out_foreign_tokens(request.sampling, context.engine.model_info().vocab_size, warnings);
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
