// GET /v1/models and /v1/models/{id}
#include "base/json_writer.h"
#include "server/openai/endpoints.h"

namespace kvasir::server {
namespace {

void write_model(JsonWriter& json, const ApiContext& context) {
  const ModelInfo& model = context.engine.model_info();
  json.begin_object().member("id", context.model_name).member("object", "model");
  json.member("created", context.created_s).member("owned_by", "kvasir");
  json.member("max_model_len", model.max_model_len_tokens);
  json.member("architecture", model.architecture).member("quantization", model.quantization);
  json.member("num_parameters", model.num_parameters).end_object();
}

}  // namespace

void handle_models(const ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  HttpResponse response;
  JsonWriter json(response.body);
  json.begin_object().member("object", "list").key("data").begin_array();
  write_model(json, context);
  json.end_array().end_object();
  exchange->respond(std::move(response));
}

void handle_model(const ApiContext& context, const std::shared_ptr<Exchange>& exchange,
                  const std::string& name) {
  if (const ApiStatus status = check_model(context, name); !status) {
    return exchange->respond(error_response(status.error(), exchange->request()));
  }
  HttpResponse response;
  JsonWriter json(response.body);
  write_model(json, context);
  exchange->respond(std::move(response));
}

}  // namespace kvasir::server
