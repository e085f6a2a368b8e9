#include "server/api/model_dispatch.h"

#include <simdjson.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "server/api/served_models.h"

namespace kvasir::server::api {
namespace {

// The body's "model"; empty where there is none, or no JSON: the endpoint says what is wrong.
std::string model_of(std::string_view body) {
  const simdjson::padded_string padded(body);
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return {};
  simdjson::ondemand::object root;
  if (document.get_object().get(root) != simdjson::SUCCESS) return {};
  std::string_view name;
  if (root.find_field_unordered("model").get_string().get(name) != simdjson::SUCCESS) return {};
  return std::string(name);
}

bool has_model_row(const std::vector<FieldRow>& rows) {
  return std::ranges::find(rows, "model", &FieldRow::name) != rows.end();
}

// Answers at once, or as a task of the writer where the model is loaded first.
void answer_when_loaded(ServedModels& models, std::size_t index, const Endpoint& endpoint, const Writer& writer,
                        const std::string& rest) {
  const auto answer = [&models, index, &endpoint, writer, rest](ApiResult<ServedModels::Lease> lease) {
    if (!lease) return writer->respond(error_response(lease.error(), writer->request()));
    writer->keep(*lease);
    endpoint.answer(models.context(index), writer, rest);
  };
  models.acquire(index, [answer, writer, caller = std::this_thread::get_id()](ApiResult<ServedModels::Lease> lease) {
    if (std::this_thread::get_id() == caller) return answer(std::move(lease));
    writer->post([answer, lease = std::move(lease)] { answer(lease); });
  });
}

}  // namespace

bool names_a_model(const Endpoint& endpoint) {
  if (endpoint.is_of_model) return true;
  if (endpoint.fields == nullptr || endpoint.is_of_server) return false;
  const FieldTable table = endpoint.fields();
  return has_model_row(table.own) || has_model_row(table.shared);
}

void answer_with_model(ApiContext& context, const Endpoint& endpoint, const Writer& writer, const std::string& rest) {
  ServedModels* const models = context.models;
  if (models == nullptr) return endpoint.answer(context, writer, rest);
  const http::Request& request = writer->request();
  const std::string name = endpoint.is_of_model ? http::query_value(request.query, "model").value_or("") : model_of(request.body);
  if (endpoint.is_of_model) {
    if (const ApiStatus known = check_model(context, name); !known && models->find(name) == ServedModels::npos) {
      return writer->respond(error_response(known.error(), request));
    }
  }
  const std::size_t index = models->has_one() ? 0 : models->find(name);
  if (index == ServedModels::npos) return endpoint.answer(context, writer, rest);  // which says so
  answer_when_loaded(*models, index, endpoint, writer, rest);
}

}  // namespace kvasir::server::api
