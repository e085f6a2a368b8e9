// POST /embedding and /embeddings, as llama-server answers them
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/openai/embedding_start.h"

namespace kvasir::server::api {

extern const Endpoint kEmbeddings;

namespace {

ApiStatus read_content(const FieldInput& field, EmbeddingRequest& request) {
  KVASIR_TRY(request.inputs, prompts_of(field, field.limits.inputs));
  return {};
}

// 2 is the length of 1 that embeddings have here.
ApiStatus read_norm(const FieldInput& field, EmbeddingRequest&) {
  KVASIR_TRY(const std::int64_t norm, integer_of(field));
  if (norm != 2) field.warn(" is left out: embeddings have length 1");
  return {};
}

constexpr auto kContentFields = std::to_array<Field<EmbeddingRequest>>({
    {"content", "string, token ids, or an array of either", {}, "the texts; each gives one embedding", read_content},
    {"input", "string, token ids, or an array of either", {}, "another name for content", read_content},
    {"model", "string", {}, "whose embeddings; absent: those of the one there is", read_string<&EmbeddingRequest::model>},
    {"embd_normalize", "integer", {}, "2: length 1, as they have; others are left out", read_norm},
});

ApiResult<EmbeddingRequest> parse_content(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  EmbeddingRequest request;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<EmbeddingRequest>>(),
                             std::span<const Field<EmbeddingRequest>>(kContentFields), limits, request, warnings));
  if (request.inputs.empty()) return bad_request("content is missing", "content", "missing_parameter");
  return request;
}

// [{"index","embedding":[[...]]}]
class LlamaEmbeddingFormat final : public AnswerFormat {
 public:
  std::string whole(const std::vector<ChoiceResult>& choices, const Usage&) override {
    std::string body;
    JsonWriter json(body);
    json.begin_array();
    for (std::size_t i = 0; i < choices.size(); ++i) {
      json.begin_object().member("index", i).key("embedding").begin_array().begin_array();
      for (const float number : choices[i].embedding) json.value(number);
      json.end_array().end_array().end_object();
    }
    json.end_array();
    return body;
  }
  // Nobody can ask for a stream.
  void append_events(std::int32_t, const RequestOutput&, const Usage&, http::Events&) override {}
  void append_last_events(const Usage&, http::Events&) override {}
};

ApiStatus start_embedding(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(EmbeddingRequest asked, read_request(context, *writer, parse_content));
  KVASIR_TRY(std::vector<Request> requests,
             embedding_requests(context, std::move(asked), *writer, context.ids.next("embd-")));
  Generation::start_scoring(context, writer, std::make_unique<LlamaEmbeddingFormat>(), std::move(requests));
  return {};
}

// Clients of OpenAI that leave "/v1" out have an input.
bool is_openai(const ApiContext& context, const std::string& body) {
  if (!body.contains("\"content\"")) return true;
  const auto document = JsonDocument::parse(body, context.limits);
  return document && !find_member(document->root(), "content");
}

FieldTable content_table() {
  const std::span<const Field<EmbeddingRequest>> fields = kContentFields;
  return {.title = "Fields", .own = rows_of(fields), .shared = {}};
}

}  // namespace

extern const Endpoint kLlamaEmbedding = {
    .method = "POST",
    .pattern = "/embedding",
    .meaning = "texts as vectors of length 1, as llama-server's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_embedding(context, writer), *writer); },
    .api = "llama-server",
    .fields = content_table,
};

extern const Endpoint kLlamaEmbeddings = {
    .method = "POST",
    .pattern = "/embeddings",
    .meaning = "the same; without content as /v1/embeddings",
    .answer =
        [](ApiContext& context, const Writer& writer, const std::string& rest) {
          if (is_openai(context, writer->request().body)) return kEmbeddings.answer(context, writer, rest);
          respond_unless(start_embedding(context, writer), *writer);
        },
    .api = "llama-server",
    .fields =
        [] {
          return FieldTable{.title = {}, .own = content_table().own, .shared = {},
                            .remark = "Fields: those of `/embedding`, or those of `/v1/embeddings`."};
        },
};

}  // namespace kvasir::server::api
