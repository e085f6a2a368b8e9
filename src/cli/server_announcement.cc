#include "cli/server_announcement.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/standard_output.h"

namespace kvasir::cli {

std::string listening_url(const server::ServerConfig& config, std::uint16_t port) {
  const std::string& host = config.host;
  const bool is_any = host == "0.0.0.0" || host == "::";
  const std::string name = is_any ? "localhost" : host.find(':') == host.npos ? host : "[" + host + "]";
  return fmt::format("{}://{}:{}", config.tls_certificate_file.empty() ? "http" : "https", name, port);
}

namespace {

std::string curl_line(const Engine& engine, const std::string& url, const server::ServerConfig& config) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("model", config.served_model_name);
  const bool can_chat = engine.chat_template() != nullptr, is_encoder = engine.model_info().is_encoder;
  if (is_encoder) {
    json.member("input", "Once upon a time");
  } else if (can_chat) {
    json.key("messages")
        .begin_array()
        .begin_object()
        .member("role", "user")
        .member("content", "Hello!")
        .end_object()
        .end_array();
  } else {
    json.member("prompt", "Once upon a time").member("max_tokens", 32);
  }
  json.end_object();
  const std::string key = config.api_keys_file.empty() ? "" : " -H \"Authorization: Bearer $KEY\"";
  return fmt::format("curl {}/v1/{} -H 'Content-Type: application/json'{} -d '{}'", url,
                     is_encoder ? "embeddings"
                     : can_chat ? "chat/completions"
                                : "completions",
                     key, body);
}

std::string describe_memory(const std::string& model, const Engine& engine) {
  const ModelInfo& info = engine.model_info();
  const bool is_on_cpu = info.device.empty() || info.device == "cpu";
  return fmt::format("{} ({}, {}): {} of weights, {} of KV, up to {} tokens a request{}", printable_line(model),
                     info.architecture, info.quantization, format_bytes(info.weight_bytes),
                     format_bytes(engine.stats().kv_bytes_total), info.max_model_len_tokens,
                     is_on_cpu ? "" : ", on " + info.device);
}

std::string describe_models(const Announced& models) {
  std::string lines;
  const auto add = [&](const std::string& line) { lines += (lines.empty() ? "" : "\n") + line; };
  for (const ModelPlace& place : models.places) {
    const bool is_loaded = &place == &models.places.front() && models.first != nullptr;
    add(is_loaded ? describe_memory(place.model, *models.first)
                  : fmt::format("{} ({}, {}): loaded when it is asked", printable_line(place.name),
                                place.described.architecture, place.described.quantization));
  }
  return lines;
}

}  // namespace

void announce(const Announced& models, const server::Server& server, const server::ServerConfig& config, bool as_json) {
  const std::string url = listening_url(config, server.port());
  const std::string memory = describe_models(models);
  const std::string curl = models.first == nullptr ? fmt::format("curl {}/v1/models", url)
                                                   : curl_line(*models.first, url, config);
  const std::optional<std::uint16_t> grpc_port = server.grpc_port(), ollama_port = server.ollama_port();
  if (!as_json) {
    print(fmt::format("{}\n{} (Ctrl-C stops)\n", memory, url));
    if (grpc_port) print(fmt::format("gRPC on port {}\n", *grpc_port));
    if (ollama_port) print(fmt::format("Ollama's API on port {}\n", *ollama_port));
    return print(curl + "\n");
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("model", config.served_model_name).key("models").begin_array();
  for (const ModelPlace& place : models.places) {
    const bool is_loaded = &place == &models.places.front() && models.first != nullptr;
    json.begin_object().member("name", place.name).key("names").begin_array();
    for (const std::string& name : place.names) json.value(name);
    json.end_array().member("path", place.model).member("state", is_loaded ? "loaded" : "known").end_object();
  }
  json.end_array().member("memory", memory).member("url", url);
  if (models.first != nullptr) json.member("device", models.first->model_info().device);
  if (grpc_port) json.member("grpc_port", *grpc_port);
  if (ollama_port) json.member("ollama_port", *ollama_port);
  json.member("example", curl).end_object();
  print(out + "\n");
}

}  // namespace kvasir::cli
