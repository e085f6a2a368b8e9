// POST /api/chat and /api/generate
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/api/answer_start.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/fim_prompt.h"
#include "server/api/generation.h"
#include "server/api/ollama/json_lines.h"
#include "server/api/ollama/model_lookup.h"
#include "server/api/ollama/ollama_format.h"
#include "server/api/ollama/ollama_json.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/ollama/options.h"
#include "server/request_memory.h"

namespace kvasir::server::api {
namespace {

constexpr std::int32_t kExpectedTokens = 1024;       // answers are seldom as long as they may be
constexpr std::int64_t kBytesPerContextToken = 16;  // its digits, written and waiting to be sent, and the number

void warn_short_context(const ApiContext& context, const OllamaRequest& request, http::ResponseWriter& writer) {
  const std::int64_t most = context.engine.model_info().max_model_len_tokens;
  if (request.num_ctx <= most) return;
  add_warnings({.messages = {fmt::format("options.num_ctx: {} is more than the server's {} tokens", request.num_ctx, most)}},
               writer);
}

OllamaFormat::Options options_of(const ApiContext& context, const OllamaRequest& request, const Writer& writer,
                                 bool is_chat) {
  return {.model = answering_name(context, request.model),
          .received_at = writer->received_at(),
          .is_chat = is_chat,
          .logprobs = request.logprobs,
          .prompt_tokens = {},
          .reading = {},
          .memory = RequestMemory::Share(context.memory, writer->request().tenant.name)};
}

void answer_ollama(ApiContext& context, const Writer& writer, const OllamaRequest& request,
                   OllamaFormat::Options options, Request wanted) {
  if (request.stream) writer->encode_events(kJsonLines);
  auto format = std::make_unique<OllamaFormat>(std::move(options), *context.engine.tokenizer(), context.ids);
  answer_one(context, writer, request, std::move(format), std::move(wanted));
}

ApiStatus start_ollama_chat(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const OllamaRequest request, read_ollama_request(context, *writer, parse_ollama_chat));
  if (!request.has_messages) {
    writer->respond({.body = loaded_json(context, request.model, /*is_chat=*/true)});
    return {};
  }
  warn_short_context(context, request, *writer);
  KVASIR_TRY(ChatStart start, start_of_chat(context, request, *writer, context.ids.next("chat-")));
  OllamaFormat::Options options = options_of(context, request, writer, /*is_chat=*/true);
  options.reading = std::move(start.tool_calls);
  answer_ollama(context, writer, request, std::move(options), std::move(start.wanted));
  return {};
}

// A prompt that no template shows: a raw one, one with a suffix, or any of a model without.
ApiResult<Request> plain_start(const ApiContext& context, const OllamaRequest& request, http::ResponseWriter& writer,
                               const std::string& id) {
  if (!request.fills_in()) {
    return start_of_text(context, request, {"prompt", request.prompt},
                         {.parse_special = request.is_raw, .add_special = true}, writer, id);
  }
  Warnings warnings;
  KVASIR_TRY(std::vector<TokenId> prompt,
             fim_prompt(context, {.prefix = request.prompt, .suffix = request.suffix, .middle = {}, .chunks = {}},
                        request.sampling.max_tokens, "suffix", warnings));
  add_warnings(warnings, writer);
  return start_of_tokens(context, request, std::move(prompt), "suffix", writer, id);
}

// The tokens of the conversation before go first, without a second beginning of the text. Errors (400): a token outside
// the vocabulary, and what is beyond the context.
ApiStatus put_context_first(const ApiContext& context, const OllamaRequest& request, Request& wanted) {
  if (request.tokens.empty()) return {};
  KVASIR_TRY(std::vector<TokenId> tokens, encode_prompt({"context", request.tokens}, context.engine, {}));
  const TokenId bos = context.engine.tokenizer()->vocab().bos();
  std::vector<TokenId>& prompt = wanted.prompt_token_ids;
  const bool has_two = bos != kNoToken && tokens.front() == bos && !prompt.empty() && prompt.front() == bos;
  tokens.insert(tokens.end(), prompt.begin() + (has_two ? 1 : 0), prompt.end());
  prompt = std::move(tokens);
  const std::int32_t most = context.engine.model_info().max_model_len_tokens;
  cut_to_context(wanted.sampling, std::ssize(prompt), most);
  return check_context(wanted, most, "context");
}

ApiStatus start_ollama_generate(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const OllamaRequest request, read_ollama_request(context, *writer, parse_ollama_generate));
  if (!request.has_prompt()) {
    writer->respond({.body = loaded_json(context, request.model, /*is_chat=*/false)});
    return {};
  }
  warn_short_context(context, request, *writer);
  const std::string id = context.ids.next("gen-");
  OllamaFormat::Options options = options_of(context, request, writer, /*is_chat=*/false);
  const bool is_plain = request.is_raw || request.fills_in() || context.engine.chat_template() == nullptr;
  Request wanted;
  if (is_plain) {
    KVASIR_TRY(wanted, plain_start(context, request, *writer, id));
  } else {
    KVASIR_TRY(ChatStart start, start_of_chat(context, request, *writer, id, "prompt"));
    wanted = std::move(start.wanted);
    options.reading = std::move(start.tool_calls);
  }
  KVASIR_CHECKED(put_context_first(context, request, wanted));
  if (!request.is_raw) {
    const std::int32_t most = std::min(wanted.sampling.max_tokens.value_or(kExpectedTokens), kExpectedTokens);
    options.gives_context = true;
    options.prompt_tokens = wanted.prompt_token_ids;
    KVASIR_CHECKED(options.memory.resize((std::ssize(wanted.prompt_token_ids) + most) * kBytesPerContextToken));
  }
  answer_ollama(context, writer, request, std::move(options), std::move(wanted));
  return {};
}

FieldTable table_of(std::span<const Field<OllamaRequest>> fields) {
  return {.title = "Fields", .own = rows_of(fields), .shared = {}, .object = "options", .members = option_rows()};
}

}  // namespace

extern const Endpoint kOllamaChat = {
    .method = "POST",
    .pattern = "/api/chat",
    .meaning = "the next message of a conversation, as Ollama's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_ollama_chat(context, writer), *writer); },
    .api = "ollama",
    .fields = [] { return table_of(ollama_chat_fields()); },
};

extern const Endpoint kOllamaGenerate = {
    .method = "POST",
    .pattern = "/api/generate",
    .meaning = "the answer to one prompt, or what stands between two texts, as Ollama's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_ollama_generate(context, writer), *writer); },
    .api = "ollama",
    .fields = [] { return table_of(ollama_generate_fields()); },
};

}  // namespace kvasir::server::api
