// POST /completion and /infill, as llama-server answers them
#include <memory>
#include <utility>
#include <vector>

#include "server/api/answer_start.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/fim_prompt.h"
#include "server/api/generation.h"
#include "server/api/llama/llama_format.h"
#include "server/api/llama/llama_request.h"

namespace kvasir::server::api {
namespace {

// The biases of texts are those of their tokens. Error (400): the model has no tokenizer.
ApiStatus add_text_biases(const ApiContext& context, LlamaRequest& request) {
  if (request.text_biases.empty()) return {};
  const text::Tokenizer* const tokenizer = context.engine.tokenizer();
  if (tokenizer == nullptr) return bad_request("the model file has no tokenizer: logit_bias must have token ids", "logit_bias");
  for (const auto& [text, bias] : request.text_biases) {
    for (const TokenId token : tokenizer->encode(text, {.parse_special = true, .add_special = false})) {
      request.sampling.logit_bias.emplace_back(token, bias);
    }
  }
  return {};
}

// The first piece begins the text.
ApiResult<std::vector<TokenId>> tokens_of(const ApiContext& context, const LlamaRequest::Prompt& prompt) {
  std::vector<TokenId> tokens;
  for (const PlainPrompt& piece : prompt) {
    const bool is_first = &piece == &prompt.front();
    KVASIR_TRY(const std::vector<TokenId> more,
               encode_prompt(piece, context.engine, {.parse_special = true, .add_special = is_first}, EmptyText::kBegins));
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

LlamaFormat::Options format_options(const ApiContext& context, const LlamaRequest& request,
                                    const std::vector<Request>& requests) {
  LlamaFormat::Options options{.model = answering_name(context, request),
                               .prompt_tokens = {},
                               .choices_per_prompt = request.sampling.n,
                               .is_list = request.is_list,
                               .probs = request.n_probs > 0,
                               .has_post_sampling_probs = request.has_post_sampling_probs,
                               .return_tokens = request.return_tokens,
                               .timings_per_token = request.timings_per_token,
                               .response_fields = request.response_fields,
                               .sampling = requests.front().sampling,
                               .context_tokens = context.engine.model_info().max_model_len_tokens};
  for (const Request& wanted : requests) {
    options.prompt_tokens.push_back(static_cast<std::int32_t>(wanted.prompt_token_ids.size()));
  }
  return options;
}

void answer_llama(ApiContext& context, const Writer& writer, const LlamaRequest& request, std::vector<Request> requests) {
  auto format = std::make_unique<LlamaFormat>(format_options(context, request, requests), context.engine.tokenizer());
  Generation::start(context, writer, request, std::move(format), std::move(requests));
}

ApiStatus start_completion(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(LlamaRequest request, read_request(context, *writer, parse_llama_completion));
  KVASIR_CHECKED(add_text_biases(context, request));
  const std::string id = context.ids.next("cmpl-");
  std::vector<Request> requests;
  for (const LlamaRequest::Prompt& prompt : request.prompts) {
    KVASIR_TRY(std::vector<TokenId> tokens, tokens_of(context, prompt));
    KVASIR_TRY(Request wanted, start_of_tokens(context, request, std::move(tokens), prompt.front().name, *writer, id));
    requests.push_back(std::move(wanted));
  }
  answer_llama(context, writer, request, std::move(requests));
  return {};
}

ApiStatus start_infill(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(LlamaRequest request, read_request(context, *writer, parse_infill));
  KVASIR_CHECKED(add_text_biases(context, request));
  Warnings warnings;
  KVASIR_TRY(std::vector<TokenId> tokens,
             fim_prompt(context, request.fim, request.sampling.max_tokens, "input_prefix", warnings));
  add_warnings(warnings, *writer);
  KVASIR_TRY(Request wanted,
             start_of_tokens(context, request, std::move(tokens), "input_prefix", *writer, context.ids.next("infill-")));
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  answer_llama(context, writer, request, std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kLlamaCompletion = {
    .method = "POST",
    .pattern = "/completion",
    .meaning = "what follows a text, as llama-server's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_completion(context, writer), *writer); },
    .api = "llama-server",
    .fields = [] { return beside_common_fields(llama_completion_fields()); },
};

extern const Endpoint kInfill = {
    .method = "POST",
    .pattern = "/infill",
    .meaning = "what stands between two texts, as llama-server's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_infill(context, writer), *writer); },
    .api = "llama-server",
    .fields = [] { return beside_common_fields(infill_fields()); },
};

}  // namespace kvasir::server::api
