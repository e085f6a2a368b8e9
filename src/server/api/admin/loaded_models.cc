// GET /v1/ps, POST /v1/models/load and /v1/models/unload: which models are in memory.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/admin/operators.h"
#include "server/api/endpoint.h"
#include "server/api/json_input.h"
#include "server/api/served_models.h"

namespace kvasir::server::api {
namespace {

struct NamedModel {
  std::string model;
};

constexpr Field<NamedModel> kFields[] = {
    {"model", "string", {}, "which one, by any of its names", read_string<&NamedModel::model>},
};

void write_model_status(JsonWriter& json, const ApiContext& context, const ModelStatus& status) {
  const EngineStats stats = context.engine.stats();
  const bool is_loaded = status.state == ModelState::kLoaded;
  json.begin_object().member("name", status.name).key("names").begin_array();
  for (const std::string& name : status.names) json.value(name);
  json.end_array().member("path", status.path).member("state", name_of(status.state));
  json.member("memory_bytes", is_loaded ? context.engine.model_info().weight_bytes + stats.kv_bytes_total : 0)
      .member("kv_bytes_used", stats.kv_bytes_used)
      .member("num_running", stats.num_running)
      .member("num_waiting", stats.num_waiting)
      .member("idle_s", static_cast<double>(status.idle_ms) / 1000.0);
  if (is_loaded) json.member("load_ms", status.load_ms);
  if (!status.failure.empty()) json.member("failure", status.failure);
  json.end_object();
}

// The one model of a server that never lets it go.
ModelStatus status_of_only(const ApiContext& context) {
  return {.name = context.model_name, .state = ModelState::kLoaded};
}

void list_models_in_memory(const ApiContext& context, const Writer& writer) {
  if (const ApiStatus may = check_operator(*writer); !may) return respond_unless(may, *writer);
  http::Response response;
  JsonWriter json(response.body);
  json.begin_array();
  if (context.models == nullptr) {
    write_model_status(json, context, status_of_only(context));
  } else {
    for (const ModelStatus& status : context.models->status()) {
      write_model_status(json, context.models->context(status.index), status);
    }
  }
  json.end_array();
  writer->respond(std::move(response));
}

// The index of the model that the body names.
ApiResult<std::size_t> named_model(const ApiContext& context, const Writer& writer) {
  KVASIR_CHECKED(check_operator(*writer));
  Warnings warnings;
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(writer->request().body, context.limits));
  NamedModel named;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<NamedModel>>(),
                             std::span<const Field<NamedModel>>(kFields), context.limits, named, warnings));
  if (named.model.empty()) return bad_request("model is missing", "model", "missing_parameter");
  if (context.models == nullptr) {
    KVASIR_CHECKED(check_model(context, named.model));
    return bad_request("this server has one model, which stays loaded (kvasir serve takes several)", "model");
  }
  const std::size_t index = context.models->find(named.model);
  const ApiContext& found = index == ServedModels::npos ? context : context.models->context(index);
  KVASIR_CHECKED(check_model(found, named.model));
  return index;
}

void unload_model(const ApiContext& context, const Writer& writer) {
  const auto index = named_model(context, writer);
  if (!index) return respond_unless(std::unexpected(index.error()), *writer);
  const bool was_loaded = context.models->unload(*index);
  std::string body;
  JsonWriter(body)
      .begin_object()
      .member("name", context.models->model(*index).name)
      .member("was_loaded", was_loaded)
      .end_object();
  writer->respond({.body = std::move(body)});
}

// Answers when it is loaded.
void load_model(const ApiContext& context, const Writer& writer) {
  const auto index = named_model(context, writer);
  if (!index) return respond_unless(std::unexpected(index.error()), *writer);
  context.models->acquire(*index, [&context, writer, index = *index](ApiResult<ServedModels::Lease> lease) {
    writer->post([&context, writer, index, lease = std::move(lease)] {
      if (!lease) return respond_unless(std::unexpected(lease.error()), *writer);
      std::string body;
      JsonWriter(body)
          .begin_object()
          .member("name", context.models->model(index).name)
          .member("state", name_of(ModelState::kLoaded))
          .end_object();
      writer->respond({.body = std::move(body)});
    });
  });
}

FieldTable fields_of_named() { return {.title = "Fields", .own = rows_of(std::span<const Field<NamedModel>>(kFields))}; }

}  // namespace

extern const Endpoint kPs = {
    .method = "GET",
    .pattern = "/v1/ps",
    .meaning = "the models of the server, which of them are loaded, what they hold and do; for operators",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { list_models_in_memory(context, writer); },
    .api = "kvasir",
};

extern const Endpoint kLoadModel = {
    .method = "POST",
    .pattern = "/v1/models/load",
    .meaning = "load a model of the server before somebody asks it; for operators",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { load_model(context, writer); },
    .api = "kvasir",
    .fields = fields_of_named,
    .is_of_server = true,
};

extern const Endpoint kUnloadModel = {
    .method = "POST",
    .pattern = "/v1/models/unload",
    .meaning = "give a model's memory back when its requests have ended; for operators",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { unload_model(context, writer); },
    .api = "kvasir",
    .fields = fields_of_named,
    .is_of_server = true,
};

}  // namespace kvasir::server::api
