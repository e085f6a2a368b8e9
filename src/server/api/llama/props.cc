// GET /props and /slots, POST /apply-template, as llama-server answers them
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "kvasir/engine_snapshot.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/openai/chat_fields.h"
#include "server/request_memory.h"

namespace kvasir::server::api {
namespace {

std::string_view token_text(const text::Tokenizer* tokenizer, TokenId token) {
  return tokenizer == nullptr || token == kNoToken ? std::string_view() : tokenizer->vocab().text(token);
}

void write_default_settings(JsonWriter& json, const ApiContext& context) {
  const SamplingParams& sampling = context.engine.model_info().default_sampling;
  json.key("default_generation_settings").begin_object();
  json.member("id", 0).member("n_ctx", context.engine.model_info().max_model_len_tokens);
  json.member("speculative", false).member("is_processing", false).key("params").begin_object();
  json.member("n_predict", -1).member("temperature", sampling.temperature).member("top_k", sampling.top_k);
  json.member("top_p", sampling.top_p).member("min_p", sampling.min_p);
  json.member("repeat_penalty", sampling.repetition_penalty).end_object().end_object();
}

void answer_props(const ApiContext& context, const Writer& writer) {
  const text::Tokenizer* const tokenizer = context.engine.tokenizer();
  const text::ChatTemplate* const chat_template = context.engine.chat_template();
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  write_default_settings(json, context);
  json.member("total_slots", context.num_slots).member("model_alias", context.model_name);
  json.member("model_path", context.model_name);  // where the file lies is nobody's business
  json.member("chat_template", chat_template == nullptr ? std::string_view() : chat_template->source());
  json.member("bos_token", token_text(tokenizer, tokenizer == nullptr ? kNoToken : tokenizer->vocab().bos()));
  json.member("eos_token", token_text(tokenizer, tokenizer == nullptr ? kNoToken : tokenizer->vocab().eos()));
  json.key("modalities").begin_object().member("vision", false).member("audio", false).end_object();
  json.member("build_info", "kvasir " + context.version).end_object();
  writer->respond({.body = std::move(body)});
}

// The requests that run have the first slots. Only operators see how far others' are.
std::string slots_json(const ApiContext& context, const EngineSnapshot& snapshot, const auth::Tenant& tenant) {
  std::vector<const RequestActivity*> running;
  for (const RequestActivity& request : snapshot.requests) {
    if (request.stage != RequestStage::kWaiting) running.push_back(&request);
  }
  const std::size_t count = std::max(static_cast<std::size_t>(context.num_slots), running.size());
  std::string body;
  JsonWriter json(body);
  json.begin_array();
  for (std::size_t i = 0; i < count; ++i) {
    json.begin_object().member("id", i).member("n_ctx", context.engine.model_info().max_model_len_tokens);
    json.member("speculative", false).member("is_processing", i < running.size());
    const bool is_seen = i < running.size() && (tenant.is_operator || running[i]->tenant == tenant.name);
    if (is_seen) {
      json.member("n_prompt_tokens", running[i]->num_prompt_tokens).key("next_token").begin_object();
      json.member("n_decoded", running[i]->num_generated_tokens).end_object();
    }
    json.end_object();
  }
  json.end_array();
  return body;
}

void answer_slots(const ApiContext& context, const Writer& writer) {
  context.engine.inspect([&context, writer](EngineSnapshot snapshot) {
    writer->post([&context, writer, snapshot = std::move(snapshot)] {
      writer->respond({.headers = {{"Cache-Control", "no-store"}},
                       .body = slots_json(context, snapshot, writer->request().tenant)});
    });
  });
}

ApiStatus apply_template(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const ChatRequest request, read_request(context, writer, parse_chat_request));
  KVASIR_CHECKED(admit(context, writer, 0));
  KVASIR_TRY(const std::vector<TokenId> tokens, answerable_prompt(context, request));
  std::string prompt = context.engine.tokenizer()->decode(tokens, /*render_special=*/true);
  RequestMemory::Share memory(context.memory, writer.request().tenant.name);
  KVASIR_CHECKED(plan_answer(writer, 2 * json_string_bytes(prompt), memory));
  std::string body;
  JsonWriter(body).begin_object().member("prompt", prompt).end_object();
  writer.respond({.body = std::move(body)});
  return {};
}

}  // namespace

extern const Endpoint kProps = {
    .method = "GET",
    .pattern = "/props",
    .meaning = "the model, its template and what requests that say nothing get, as llama-server's clients ask",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { answer_props(context, writer); },
    .api = "llama-server",
    .is_of_model = true,
};

extern const Endpoint kSlots = {
    .method = "GET",
    .pattern = "/slots",
    .meaning = "how many answers can be made at a time, and which are, as llama-server's clients ask",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { answer_slots(context, writer); },
    .api = "llama-server",
    .is_of_model = true,
};

extern const Endpoint kApplyTemplate = {
    .method = "POST",
    .pattern = "/apply-template",
    .meaning = "a conversation as the text that the model reads",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(apply_template(context, *writer), *writer); },
    .api = "llama-server",
    .fields =
        [] {
          return FieldTable{.title = {}, .own = rows_of(chat_fields()), .shared = rows_of(generation_fields()),
                            .remark = "Fields: those of `/v1/chat/completions`."};
        },
};

}  // namespace kvasir::server::api
