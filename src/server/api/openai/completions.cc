// POST /v1/completions
#include <utility>
#include <variant>
#include <vector>

#include "server/api/adapter_choice.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/fim_prompt.h"
#include "server/api/generation.h"
#include "server/api/openai/completion_format.h"
#include "server/api/openai/completion_request.h"

namespace kvasir::server::api {
namespace {

CompletionFormat::EchoedPrompt echoed(const CompletionRequest& request, const PlainPrompt& prompt,
                                      const std::vector<TokenId>& ids, const text::Tokenizer* tokenizer) {
  if (const auto* text = std::get_if<std::string>(&prompt.content)) return {*text, ids};
  return {tokenizer == nullptr ? "" : tokenizer->decode(ids, !request.sampling.skip_special_tokens), ids};
}

ApiResult<std::vector<TokenId>> completion_tokens(const ApiContext& context, const CompletionRequest& request,
                                                  const PlainPrompt& prompt, Warnings& warnings) {
  if (request.suffix.empty()) {
    return encode_prompt(prompt, context.engine,
                         {.parse_special = request.parse_special, .add_special = request.add_special_tokens},
                         EmptyText::kBegins);
  }
  const FimParts parts{
      .prefix = std::get<std::string>(prompt.content), .suffix = request.suffix, .middle = {}, .chunks = {}};
  return fim_prompt(context, parts, request.sampling.max_tokens, "suffix", warnings);
}

ApiStatus start_completions(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const CompletionRequest request, read_request(context, *writer, parse_completion_request));
  const text::Tokenizer* tokenizer = context.engine.tokenizer();
  CompletionFormat::Options options = {
      .header = make_answer_header(context, request, "cmpl-"),
      .num_prompts = static_cast<std::int32_t>(request.prompts.size()),
      .choices_per_prompt = request.sampling.n,
      .logprobs = request.sampling.logprobs.has_value(),
      .prompt_logprobs = request.sampling.prompt_logprobs.has_value() && !request.echo,
      .timings = request.timings_per_token,
      .render_special = !request.sampling.skip_special_tokens,
      .echo = {}};
  std::vector<Request> requests;
  Warnings warnings;
  for (const PlainPrompt& prompt : request.prompts) {
    KVASIR_TRY(std::vector<TokenId> ids, completion_tokens(context, request, prompt, warnings));
    if (request.echo) options.echo.push_back(echoed(request, prompt, ids, tokenizer));
    Request wanted = engine_request(request, writer->request().tenant, context.kv, std::move(ids));
    KVASIR_CHECKED(choose_adapter(context, request, wanted));
    // Text that is scored and not continued is computed whole whatever is cached, and seldom comes again.
    if (request.sampling.max_tokens == 0 && request.sampling.prompt_logprobs) wanted.use_prefix_cache = false;
    KVASIR_CHECKED(fit_context(context, wanted, prompt.name, warnings));
    wanted.client_id = options.header.id;
    requests.push_back(std::move(wanted));
  }
  add_warnings(warnings, *writer);
  auto format = std::make_unique<CompletionFormat>(std::move(options), tokenizer);
  Generation::start(context, writer, request, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kCompletions = {
    .method = "POST",
    .pattern = "/v1/completions",
    .meaning = "what follows a text; with `echo` and `max_tokens` 0, what a text is worth",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_completions(context, writer), *writer); },
    .fields = [] { return beside_common_fields(completion_fields()); },
};

}  // namespace kvasir::server::api
