// POST /api/pull and DELETE /api/delete
#include <fmt/format.h>

#include <string_view>

#include "base/json_writer.h"
#include "base/printable.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/library_worker.h"
#include "server/api/ollama/json_lines.h"
#include "server/api/ollama/model_lookup.h"
#include "server/api/ollama/models_request.h"
#include "server/api/ollama/pull_answer.h"
#include "server/api/served_models.h"

namespace kvasir::server::api {
namespace {

// No request makes the server fetch or delete unless an operator's key comes with it, or the server was told so.
ApiStatus check_may_change_models(const ApiContext& context, const http::ResponseWriter& writer) {
  const auth::Tenant& tenant = writer.request().tenant;
  const bool has_operators_key = !tenant.name.empty() && tenant.is_operator;
  if (context.allows_pull || has_operators_key) return {};
  return std::unexpected(ApiError{403,
                                  "models are pulled and deleted by an operator's key, or where the server was started "
                                  "with --allow-pull",
                                  {},
                                  "forbidden"});
}

void respond_with_status(const Writer& writer, bool is_stream, std::string_view status) {
  http::Event event;
  JsonWriter(event.data).begin_object().member("status", status).end_object();
  if (!is_stream) return writer->respond({.body = std::move(event.data)});
  writer->encode_events(kJsonLines);
  writer->begin_stream();
  writer->write({&event, 1});
  writer->end_stream();
}

ApiStatus start_pull(const ApiContext& context, const Writer& writer) {
  KVASIR_CHECKED(check_may_change_models(context, *writer));
  Warnings warnings;
  KVASIR_TRY(const OllamaModelRequest request, parse_ollama_pull(writer->request().body, context.limits, warnings));
  add_warnings(warnings, *writer);
  const bool is_served = context.models == nullptr ? check_model(context, request.model).has_value()
                                                   : context.models->find_named(request.model) != ServedModels::npos;
  if (!is_served && context.library != nullptr) {
    const auto answer = std::make_shared<PullAnswer>(writer, request.model, request.stream);
    answer->watch_client();
    return context.library->pull(
        request.model, [answer](const ModelLibrary::Progress& progress) { return answer->step(progress); },
        [answer](ApiStatus status) { answer->end(std::move(status)); });
  }
  if (!is_served && !context.takes_any_name) {
    return bad_request(fmt::format("this server has {} alone: `kvasir pull {}` fetches another, and a server of its own "
                                   "serves it",
                                   context.model_name, printable(request.model)),
                       "model");
  }
  respond_with_status(writer, request.stream, "success");
  return {};
}

ApiError stays(const std::string& model) {
  return {409, fmt::format("{} is being served and stays", model), "model", "model_in_use"};
}

ApiStatus start_delete(const ApiContext& context, const Writer& writer) {
  KVASIR_CHECKED(check_may_change_models(context, *writer));
  if (context.library == nullptr) {
    KVASIR_CHECKED(read_ollama_request(context, *writer, parse_ollama_delete));
    return std::unexpected(stays(context.model_name));
  }
  Warnings warnings;
  KVASIR_TRY(const OllamaModelRequest request, parse_ollama_delete(writer->request().body, context.limits, warnings));
  add_warnings(warnings, *writer);
  const std::size_t index = context.models->find_named(request.model);
  if (index == ServedModels::npos) {
    return std::unexpected(ApiError{404, fmt::format("model '{}' not found", printable(request.model)), "model", "model_not_found"});
  }
  return context.library->remove(index, [writer](ApiStatus status) {
    writer->post([writer, status = std::move(status)] {
      if (!status) return respond_unless(status, *writer);
      writer->respond({});
    });
  });
}

}  // namespace

extern const Endpoint kOllamaPull = {
    .method = "POST",
    .pattern = "/api/pull",
    .meaning = "fetch a model and serve it; 403 without an operator's key or `--allow-pull`",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_pull(context, writer), *writer); },
    .api = "ollama",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(ollama_pull_fields()), .shared = {}}; },
    .is_of_server = true,
};

extern const Endpoint kOllamaDelete = {
    .method = "DELETE",
    .pattern = "/api/delete",
    .meaning = "delete a model that was pulled, but for the first one; 403 without an operator's key or `--allow-pull`",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_delete(context, writer), *writer); },
    .api = "ollama",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(ollama_delete_fields()), .shared = {}}; },
    .is_of_server = true,
};

}  // namespace kvasir::server::api
