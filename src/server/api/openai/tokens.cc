// POST /tokenize, POST /detokenize, GET /tokenizer_info: as vLLM answers them.
#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/openai/token_requests.h"

namespace kvasir::server::api {
namespace {

ApiResult<const text::Tokenizer*> tokenizer_of(const ApiContext& context) {
  if (const text::Tokenizer* tokenizer = context.engine.tokenizer()) return tokenizer;
  return bad_request("the model file has no tokenizer");
}

ApiResult<std::vector<TokenId>> tokens_of(const ApiContext& context, const TokenizeRequest& request,
                                          const text::Tokenizer& tokenizer) {
  if (request.prompt) {
    return tokenizer.encode(
        *request.prompt, {.parse_special = request.parse_special, .add_special = request.add_special_tokens});
  }
  if (context.engine.chat_template() == nullptr) {
    return bad_request("the model has no chat template", "messages", "no_chat_template");
  }
  return chat_prompt(context, request);
}

constexpr std::int64_t kAnswerFrameBytes = 256;  // around what it is about

constexpr std::int64_t kPieceFrameBytes = 24;  // around a token with its text

std::int64_t tokens_json_bytes(std::span<const TokenId> tokens, const text::Tokenizer& tokenizer,
                               const TokenizeRequest& request) {
  std::int64_t bytes = kAnswerFrameBytes;
  for (const TokenId token : tokens) {
    bytes += std::ssize(fmt::format_int(token)) + 1;
    const std::int64_t text_bytes = json_string_bytes(tokenizer.decode_token(token, true)) + 1;
    if (request.return_token_strs) bytes += text_bytes;
    if (request.with_pieces) bytes += text_bytes + kPieceFrameBytes;
  }
  return bytes;
}

// At most.
std::int64_t text_bytes_of(std::span<const TokenId> tokens, const text::Vocab& vocab) {
  std::int64_t bytes = 0;
  for (const TokenId token : tokens) bytes += std::ssize(vocab.text(token));
  return bytes;
}

// A part of a character is a list of bytes.
JsonWriter& write_piece(JsonWriter& json, TokenId token, std::string_view piece) {
  json.begin_object().member("id", token).key("piece");
  if (is_valid_utf8(piece)) return json.value(piece).end_object();
  json.begin_array();
  for (const char byte : piece) json.value(static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return json.end_array().end_object();
}

ApiStatus tokenize(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const TokenizeRequest request, read_request(context, writer, parse_tokenize_request));
  KVASIR_CHECKED(admit(context, writer, 0));
  KVASIR_TRY(const text::Tokenizer* tokenizer, tokenizer_of(context));
  KVASIR_TRY(const std::vector<TokenId> tokens, tokens_of(context, request, *tokenizer));
  RequestMemory::Share memory(context.memory, writer.request().tenant.name);
  const std::int64_t answer_bytes = tokens_json_bytes(tokens, *tokenizer, request);
  KVASIR_CHECKED(plan_answer(writer, answer_bytes, memory));
  http::Response response;
  response.body.reserve(static_cast<std::size_t>(answer_bytes));
  JsonWriter json(response.body);
  json.begin_object().member("count", tokens.size());
  json.member("max_model_len", context.engine.model_info().max_model_len_tokens);
  json.key("tokens").begin_array();
  for (const TokenId token : tokens) {
    request.with_pieces ? write_piece(json, token, tokenizer->decode_token(token, true)) : json.value(token);
  }
  json.end_array().key("token_strs");
  if (request.return_token_strs) {
    json.begin_array();
    for (const TokenId token : tokens) json.value(tokenizer->decode_token(token, true));
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
  writer.respond(std::move(response));
  return {};
}

ApiStatus detokenize(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const DetokenizeRequest request, read_request(context, writer, parse_detokenize_request));
  KVASIR_CHECKED(admit(context, writer, 0));
  KVASIR_TRY(const text::Tokenizer* tokenizer, tokenizer_of(context));
  const std::int32_t vocab_size = tokenizer->vocab().num_tokens();
  for (std::size_t i = 0; i < request.tokens.size(); ++i) {
    if (request.tokens[i] < vocab_size) continue;
    const std::string name = fmt::format("tokens[{}]", i);
    return bad_request(fmt::format("{} must be below {}, got {}", name, vocab_size, request.tokens[i]), name);
  }
  RequestMemory::Share memory(context.memory, writer.request().tenant.name);
  const std::int64_t text_bytes = text_bytes_of(request.tokens, tokenizer->vocab());
  KVASIR_CHECKED(plan_answer(writer, text_bytes, memory));
  const std::string text = tokenizer->decode(request.tokens, !request.skip_special_tokens);
  const std::int64_t answer_bytes = kAnswerFrameBytes + 2 * json_string_bytes(text);
  KVASIR_CHECKED(plan_answer(writer, text_bytes + answer_bytes, memory));
  http::Response response;
  response.body.reserve(static_cast<std::size_t>(answer_bytes));
  JsonWriter json(response.body);
  // vLLM's name for it, and llama.cpp's.
  json.begin_object().member("prompt", text).member("content", text).end_object();
  writer.respond(std::move(response));
  return {};
}

void write_token(JsonWriter& json, std::string_view name, const text::Vocab& vocab, TokenId token) {
  json.key(name);
  if (token == kNoToken) {
    json.null();
  } else {
    json.value(vocab.text(token));
  }
}

ApiStatus tokenizer_info(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const text::Tokenizer* tokenizer, tokenizer_of(context));
  const text::Vocab& vocab = tokenizer->vocab();
  const text::ChatTemplate* chat_template = context.engine.chat_template();
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().member("tokenizer_class", "kvasir").member("vocab_size", vocab.num_tokens());
  json.member("model_max_length", context.engine.model_info().max_model_len_tokens);
  json.member("add_bos_token", tokenizer->adds_bos()).member("add_eos_token", tokenizer->adds_eos());
  write_token(json, "bos_token", vocab, vocab.bos());
  write_token(json, "eos_token", vocab, vocab.eos());
  write_token(json, "pad_token", vocab, vocab.padding());
  write_token(json, "unk_token", vocab, vocab.unknown());
  json.key("chat_template");
  if (chat_template == nullptr) {
    json.null();
  } else {
    json.value(chat_template->source());
  }
  json.end_object();
  writer.respond(std::move(response));
  return {};
}

}  // namespace

extern const Endpoint kTokenize = {
    .method = "POST",
    .pattern = "/tokenize",
    .meaning = "a text or a conversation as token ids",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(tokenize(context, *writer), *writer); },
    .fields =
        [] {
          return FieldTable{.title = "Fields, besides those of a chat",
                            .own = rows_of(tokenize_fields()),
                            .shared = rows_of(chat_fields())};
        },
};

extern const Endpoint kDetokenize = {
    .method = "POST",
    .pattern = "/detokenize",
    .meaning = "token ids as text",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(detokenize(context, *writer), *writer); },
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(detokenize_fields()), .shared = {}}; },
};

extern const Endpoint kTokenizerInfo = {
    .method = "GET",
    .pattern = "/tokenizer_info",
    .meaning = "special tokens and the chat template, for clients that render themselves",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(tokenizer_info(context, *writer), *writer); },
    .is_of_model = true,
};

}  // namespace kvasir::server::api
