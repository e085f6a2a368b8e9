// GET /api/version, /api/tags and /api/ps, POST /api/show
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/model_capabilities.h"
#include "server/api/ollama/model_lookup.h"
#include "server/api/ollama/models_request.h"
#include "server/api/ollama/ollama_json.h"
#include "server/api/served_models.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kNeverExpires = "2318-01-01T00:00:00Z";  // as Ollama says it

void answer_ollama_version(const ApiContext& context, const Writer& writer) {
  std::string body;
  JsonWriter(body).begin_object().member("version", kOllamaApiVersion).member("kvasir", context.version).end_object();
  writer->respond({.body = std::move(body)});
}

std::string loaded_at(const ApiContext& context) {
  return rfc3339(std::chrono::system_clock::from_time_t(static_cast<std::time_t>(context.created_s)));
}

// Opens the object; the members of both lists.
JsonWriter& begin_model(JsonWriter& json, const ApiContext& context) {
  const std::string name = tagged_name(context);
  json.begin_object().member("name", name).member("model", name);
  json.member("size", context.engine.model_info().weight_bytes).member("digest", model_digest(context));
  json.key("details");
  write_model_details(json, context.engine.model_info());
  return json;
}

void answer_tags(const ApiContext& context, const Writer& writer) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("models").begin_array();
  for (const ApiContext* const model : contexts_of_models(context)) {
    begin_model(json, *model).member("modified_at", loaded_at(*model)).end_object();
  }
  json.end_array().end_object();
  writer->respond({.body = std::move(body)});
}

// When the model leaves if nobody asks it again.
std::string expiry_of(const ServedModels& models, const ModelStatus& status) {
  if (models.keep_alive() == std::chrono::seconds(0)) return std::string(kNeverExpires);
  const std::chrono::milliseconds idle(status.num_users > 0 ? 0 : status.idle_ms);
  return rfc3339(std::chrono::system_clock::now() + models.keep_alive() - std::chrono::duration_cast<std::chrono::seconds>(idle));
}

void answer_ps(const ApiContext& context, const Writer& writer) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("models").begin_array();
  const auto add = [&json](const ApiContext& model, const std::string& expires_at) {
    begin_model(json, model).member("expires_at", expires_at).member("size_vram", 0);
    json.member("context_length", model.engine.model_info().max_model_len_tokens).end_object();
  };
  if (context.models == nullptr) add(context, std::string(kNeverExpires));
  const auto models = context.models == nullptr ? std::vector<ModelStatus>() : context.models->status();
  for (const ModelStatus& status : models) {
    if (status.state == ModelState::kLoaded) add(context.models->context(status.index), expiry_of(*context.models, status));
  }
  json.end_array().end_object();
  writer->respond({.body = std::move(body)});
}

void write_model_info(JsonWriter& json, const ApiContext& context) {
  const ModelInfo& model = context.engine.model_info();
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", model.architecture, name); };
  json.begin_object().member("general.architecture", model.architecture);
  json.member("general.basename", context.model_name).member("general.parameter_count", model.num_parameters);
  json.member(key("context_length"), model.max_model_len_tokens);
  json.member(key("embedding_length"), model.hidden_size).member(key("block_count"), model.num_layers);
  json.member(key("vocab_size"), model.vocab_size).end_object();
}

// As a Modelfile has them.
std::string parameters_of(const SamplingParams& sampling) {
  return fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}\nrepeat_penalty {}", sampling.temperature,
                     sampling.top_k, sampling.top_p, sampling.min_p, sampling.repetition_penalty);
}

ApiStatus show_model(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_CHECKED(read_ollama_request(context, writer, parse_ollama_show));
  const text::ChatTemplate* const chat_template = context.engine.chat_template();
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("modelfile", fmt::format("FROM {}\n", context.model_name));
  json.member("parameters", parameters_of(context.engine.model_info().default_sampling));
  json.member("template", chat_template == nullptr ? std::string_view() : chat_template->source());
  json.key("details");
  write_model_details(json, context.engine.model_info());
  json.key("model_info");
  write_model_info(json, context);
  json.key("capabilities").begin_array();
  for (const std::string_view name : capabilities_of(context)) json.value(name);
  json.end_array().member("modified_at", loaded_at(context)).end_object();
  writer.respond({.body = std::move(body)});
  return {};
}

}  // namespace

extern const Endpoint kOllamaVersion = {
    .method = "GET",
    .pattern = "/api/version",
    .meaning = "the release of Ollama whose API this is",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { answer_ollama_version(context, writer); },
    .api = "ollama",
};

extern const Endpoint kOllamaTags = {
    .method = "GET",
    .pattern = "/api/tags",
    .meaning = "the models there are, as Ollama's clients ask",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { answer_tags(context, writer); },
    .api = "ollama",
};

extern const Endpoint kOllamaPs = {
    .method = "GET",
    .pattern = "/api/ps",
    .meaning = "the models that are loaded, as Ollama's clients ask",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { answer_ps(context, writer); },
    .api = "ollama",
};

extern const Endpoint kOllamaShow = {
    .method = "POST",
    .pattern = "/api/show",
    .meaning = "what a model is and can, as Ollama's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(show_model(context, *writer), *writer); },
    .api = "ollama",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(ollama_show_fields()), .shared = {}}; },
};

}  // namespace kvasir::server::api
