// GET /v1/models and /v1/models/{id}: with the members that clients of OpenAI read, and those of Anthropic.
#include <fmt/chrono.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/model_capabilities.h"
#include "server/api/served_models.h"

namespace kvasir::server::api {
namespace {

// Figures of a model that was never loaded are left out.
void write_model(JsonWriter& json, const ApiContext& context, const ModelStatus* status) {
  const ModelInfo& model = context.engine.model_info();
  json.begin_object().member("id", context.model_name).member("object", "model");
  json.member("created", context.created_s).member("owned_by", "kvasir");
  json.member("type", "model").member("display_name", context.model_name);
  json.member("created_at",
              fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(context.created_s))));
  if (model.max_model_len_tokens > 0) json.member("max_model_len", model.max_model_len_tokens);
  json.member("architecture", model.architecture).member("quantization", model.quantization);
  json.member("num_parameters", model.num_parameters);
  if (const std::vector<std::string_view> capabilities = capabilities_of(context); !capabilities.empty()) {
    json.key("capabilities").begin_array();
    for (const std::string_view name : capabilities) json.value(name);
    json.end_array();
  }
  if (status != nullptr) {
    json.member("state", name_of(status->state));
    json.key("names").begin_array();
    for (const std::string& name : status->names) json.value(name);
    json.end_array();
  }
  json.end_object();
}

// As vLLM lists them.
void write_adapters(JsonWriter& json, const ApiContext& context) {
  const AdapterNames adapters = context.engine.adapters();
  for (const std::string& adapter : *adapters) {
    json.begin_object().member("id", adapter).member("object", "model").member("created", context.created_s);
    json.member("owned_by", "kvasir").member("type", "model").member("display_name", adapter);
    json.member("parent", context.model_name).end_object();
  }
}

void answer_models(const ApiContext& context, const Writer& writer) {
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().member("object", "list").key("data").begin_array();
  std::string last = context.model_name;
  if (context.models == nullptr || context.models->has_one()) {
    write_model(json, context, nullptr);
    write_adapters(json, context);
  } else {
    const std::vector<ModelStatus> models = context.models->status();
    for (const ModelStatus& status : models) write_model(json, context.models->context(status.index), &status);
    last = models.back().name;
  }
  json.end_array().member("has_more", false);
  json.member("first_id", context.model_name).member("last_id", last).end_object();
  writer->respond(std::move(response));
}

void answer_model(const ApiContext& context, const Writer& writer, const std::string& name) {
  const std::size_t index = context.models == nullptr ? ServedModels::npos : context.models->find(name);
  const ApiContext& named = index == ServedModels::npos ? context : context.models->context(index);
  if (const ApiStatus status = check_model(named, name); !status) {
    return writer->respond(error_response(status.error(), writer->request()));
  }
  http::Response response;
  JsonWriter json(response.body);
  write_model(json, named, nullptr);
  writer->respond(std::move(response));
}

}  // namespace

extern const Endpoint kModels = {
    .method = "GET",
    .pattern = "/v1/models",
    .meaning = "the models there are, and which are loaded",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_models(context, writer); },
};

extern const Endpoint kModel = {
    .method = "GET",
    .pattern = "/v1/models/*",
    .meaning = "a model by its name",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string& name) { answer_model(context, writer, name); },
};

}  // namespace kvasir::server::api
