// POST /api/embed and /api/embeddings
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/ollama/embed_request.h"
#include "server/api/ollama/model_lookup.h"
#include "server/api/ollama/ollama_json.h"
#include "server/api/openai/embedding_start.h"

namespace kvasir::server::api {
namespace {

void write_numbers(JsonWriter& json, const std::vector<float>& numbers) {
  json.begin_array();
  for (const float number : numbers) json.value(number);
  json.end_array();
}

// {"model","embeddings",...}, or the one embedding of the older path.
class OllamaEmbedFormat final : public AnswerFormat {
 public:
  OllamaEmbedFormat(std::string model, bool is_one, std::chrono::steady_clock::time_point received_at)
      : model_(std::move(model)), is_one_(is_one), received_at_(received_at) {}

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override {
    std::string body;
    JsonWriter json(body);
    json.begin_object();
    if (is_one_) {
      json.key("embedding");
      write_numbers(json, choices.empty() ? std::vector<float>() : choices.front().embedding);
      json.end_object();
      return body;
    }
    json.member("model", model_).key("embeddings").begin_array();
    for (const ChoiceResult& choice : choices) write_numbers(json, choice.embedding);
    const auto total = std::chrono::steady_clock::now() - received_at_;
    json.end_array().member("total_duration", std::chrono::duration_cast<std::chrono::nanoseconds>(total).count());
    json.member("load_duration", 0).member("prompt_eval_count", usage.prompt_tokens).end_object();
    return body;
  }
  // Nobody can ask for a stream.
  void append_events(std::int32_t, const RequestOutput&, const Usage&, http::Events&) override {}
  void append_last_events(const Usage&, http::Events&) override {}

 private:
  const std::string model_;
  const bool is_one_;
  const std::chrono::steady_clock::time_point received_at_;
};

template <class Parse>
ApiStatus start_embed(ApiContext& context, const Writer& writer, Parse parse, bool is_one) {
  KVASIR_TRY(OllamaEmbedRequest asked, read_ollama_request(context, *writer, parse));
  auto format = std::make_unique<OllamaEmbedFormat>(answering_name(context, asked.model), is_one, writer->received_at());
  if (asked.inputs.empty()) {
    writer->respond({.body = format->whole({}, {})});
    return {};
  }
  EmbeddingRequest wanted;
  wanted.model = asked.model;
  wanted.inputs = std::move(asked.inputs);
  wanted.dimensions = asked.dimensions;
  KVASIR_TRY(std::vector<Request> requests, embedding_requests(context, std::move(wanted), *writer,
                                                               context.ids.next("embd-"), asked.truncates));
  Generation::start_scoring(context, writer, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kOllamaEmbed = {
    .method = "POST",
    .pattern = "/api/embed",
    .meaning = "texts as vectors of length 1, as Ollama's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_embed(context, writer, parse_ollama_embed, false), *writer); },
    .api = "ollama",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(ollama_embed_fields()), .shared = {}}; },
};

extern const Endpoint kOllamaEmbeddings = {
    .method = "POST",
    .pattern = "/api/embeddings",
    .meaning = "one text as a vector of length 1, as Ollama's older clients ask",
    .answer =
        [](ApiContext& context, const Writer& writer, const std::string&) {
          respond_unless(start_embed(context, writer, parse_ollama_embeddings, true), *writer);
        },
    .api = "ollama",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(ollama_embeddings_fields()), .shared = {}}; },
};

}  // namespace kvasir::server::api
