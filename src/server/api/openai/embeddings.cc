// POST /v1/embeddings
#include <fmt/format.h>

#include "engine/embedding_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/openai/embedding_format.h"
#include "server/api/openai/embedding_request.h"

namespace kvasir::server::api {
namespace {

// The text that goes before each input that is a text. Error (400): as embedding_prompt().
ApiResult<std::string> prompt_of(const ModelInfo& model, const PromptWish& wish, http::ResponseWriter& writer) {
  auto prompt = embedding_prompt(model, wish);
  if (!prompt) return std::unexpected(to_api_error(std::move(prompt).error()));
  if (wish.input_type && model.embedding_prompts.empty()) {
    add_warnings({.messages = {"input_type is left out: the model has no prompts"}}, writer);
  }
  return *std::move(prompt);
}

ApiResult<PlainPrompt> with_prompt(PlainPrompt input, const std::string& prompt, const PromptWish& wish) {
  if (prompt.empty()) return input;
  if (auto* text = std::get_if<std::string>(&input.content)) {
    text->insert(0, prompt);
  } else if (wants_prompt(wish)) {
    return bad_request(input.name + " has token ids, and a prompt goes before texts alone", input.name);
  }
  return input;
}

ApiStatus start_embeddings(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(EmbeddingRequest asked, read_request(context, *writer, parse_embedding_request));
  const ModelInfo& model = context.engine.model_info();
  if (asked.dimensions && *asked.dimensions > model.embedding_size) {
    return bad_request(fmt::format("dimensions must be at most {}, as many as the model has, got {}",
                                   model.embedding_size, *asked.dimensions),
                       "dimensions");
  }
  if (model.pooling == Pooling::kRank && asked.pooling == Pooling::kOfModel) {
    return bad_request("model: it scores pairs of texts, and has no embeddings unless pooling says which", "model");
  }
  KVASIR_TRY(const std::string prompt, prompt_of(model, asked.prompt, *writer));
  // A prompt is there once for each input: this counts until all of the request does.
  RequestMemory::Share prompts(context.memory, writer->request().tenant.name);
  KVASIR_CHECKED(plan_answer(*writer, std::ssize(prompt) * std::ssize(asked.inputs) * kBytesPerTextByte, prompts));
  const std::string id = context.ids.next("embd-");
  std::vector<Request> requests;
  for (PlainPrompt& own : asked.inputs) {
    KVASIR_TRY(const PlainPrompt input, with_prompt(std::move(own), prompt, asked.prompt));
    Request request;
    KVASIR_TRY(request.prompt_token_ids,
               encode_prompt(input, context.engine,
                             {.parse_special = asked.parse_special, .add_special = asked.add_special_tokens}));
    request.pooling = asked.pooling;
    request.dimensions = static_cast<std::int32_t>(asked.dimensions.value_or(0));
    request.sampling.max_tokens = 0;
    request.use_prefix_cache = false;
    request.tenant = writer->request().tenant.name;
    request.priority = asked.priority;
    request.client_id = id;
    KVASIR_CHECKED(check_context(request, model.max_model_len_tokens, input.name));
    requests.push_back(std::move(request));
  }
  auto format = std::make_unique<EmbeddingFormat>(context.model_name, asked.is_base64);
  Generation::start_scoring(context, writer, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kEmbeddings = {
    .method = "POST",
    .pattern = "/v1/embeddings",
    .meaning = "texts as vectors of length 1",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_embeddings(context, writer), *writer); },
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(embedding_fields()), .shared = {}}; },
};

}  // namespace kvasir::server::api
