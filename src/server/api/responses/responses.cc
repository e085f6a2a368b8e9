// POST /v1/responses

#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/responses/item_references.h"
#include "server/api/responses/responses_format.h"
#include "server/api/responses/responses_request.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"
#include "server/api/tool_calls/tool_guide.h"

namespace kvasir::server::api {
namespace {

// A response that is about to be made.
struct Preparation {
  GenerationRequest asked;
  std::unique_ptr<ResponsesFormat> format;
  std::vector<Request> requests;
};

struct ReadResponses {
  ResponsesRequest request;
  Warnings warnings;
};

// `before` null: what goes before is not known yet.
ApiResult<ReadResponses> read_responses(const ApiContext& context, http::ResponseWriter& writer, const std::string& body,
                                        const std::string* before) {
  KVASIR_CHECKED(check_limits(context, writer));
  ReadResponses read;
  auto parsed = parse_continued_request(body, context.limits, before, read.warnings);
  if (!parsed) return std::unexpected(with_unknown_field(std::move(parsed).error(), read.warnings));
  read.request = *std::move(parsed);
  fill_sampling(read.request.sampling, context.engine.model_info().default_sampling);
  KVASIR_CHECKED(check_model(context, read.request.model));
  if (context.stored == nullptr && read.request.background) return not_supported("background", "it here");
  if (context.stored == nullptr || read.request.store.has_value()) return read;
  read.request.store = true;
  return read;
}

void generate_in_background(ApiContext& context, const Writer& writer,
                            const std::shared_ptr<Preparation>& prepared, StoredResponse kept) {
  kept.input_items = nullptr;
  http::Request request = writer->request();
  std::string().swap(request.body);  // it has been read, and nobody counts its memory any more
  auto run = std::make_shared<BackgroundWriter>(
      context.stored->executor(), std::move(request),
      [&context, kept](const http::Response* response) {
        context.stored->remove_run(kept.object.id);
        if (response != nullptr && response->status >= 400) fail_response(context, kept, response->body);
      },
      &context.metrics);
  run->keep(writer->kept());
  if (prepared->asked.stream) run->set_follower(writer);
  context.stored->add_run(kept.object.id, run);
  run->post([&context, run, prepared, kept] {
    if (run->is_over()) return;  // cancelled
    mark_in_progress(context, kept);
    Generation::start(context, run, prepared->asked, std::move(prepared->format), std::move(prepared->requests));
  });
}

// Kept first: who is told an id can ask for it. It begins whether or not its client is still there.
void start_background(ApiContext& context, const Writer& writer,
                      const std::shared_ptr<Preparation>& prepared, const StoredResponse& kept) {
  const auto begin = [&context, writer, prepared, kept](stored::ObjectStore& store) {
    ApiResult<std::string> queued = add_response(store, kept);
    if (queued) generate_in_background(context, writer, prepared, kept);
    return queued;
  };
  const auto answer = [writer, is_stream = prepared->asked.stream](std::string queued) {
    if (!is_stream) writer->respond({.body = std::move(queued)});
  };
  ask_store(context, writer, begin, answer);
}

ApiStatus start_responses(ApiContext& context, const Writer& writer, const std::shared_ptr<const std::string>& body,
                          const std::string* before) {
  KVASIR_TRY(ReadResponses read, read_responses(context, *writer, *body, before));
  ResponsesRequest& request = read.request;
  if (before == nullptr && !request.previous_response_id.empty()) {
    continue_conversation(context, writer, request.previous_response_id,
                          [&context, writer, body](const std::string& conversation) {
                            return start_responses(context, writer, body, &conversation);
                          });
    return {};
  }
  add_warnings(read.warnings, *writer);
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *writer, "input"));
  request.messages = {};  // has become a prompt
  wanted.client_id = context.ids.next("resp_");
  auto prepared = std::make_shared<Preparation>(Preparation{.asked = request});
  const bool is_stored = context.stored != nullptr && *request.store;
  const bool is_background = request.background;
  KVASIR_TRY(ToolCallReading tool_calls, guided_tool_calls(context, request, wanted, *writer));
  ResponsesFormat::Options options{.id = wanted.client_id,
                                   .created_s = static_cast<std::int64_t>(std::time(nullptr)),
                                   .model = answering_name(context, request),
                                   .request = std::move(request),
                                   .tool_calls = std::move(tool_calls),
                                   .is_stored = is_stored};
  StoredResponse kept;
  if (is_stored) {
    KVASIR_CHECKED(check_store(context));
    KVASIR_TRY(kept, begin_response(context, *writer, *body, options));
    kept.object.is_pinned = is_background;
    StoredResponse ending = kept;
    if (is_background) ending.input_items = nullptr;  // they are stored at the beginning
    options.keep = [&context, ending](std::string json) { end_response(context, ending, std::move(json)); };
  }
  prepared->format = std::make_unique<ResponsesFormat>(std::move(options), *context.engine.tokenizer(), context.ids);
  prepared->requests.push_back(std::move(wanted));
  if (is_background) {
    kept.object.json = prepared->format->queued();
    start_background(context, writer, prepared, kept);
    return {};
  }
  Generation::start(context, writer, prepared->asked, std::move(prepared->format), std::move(prepared->requests));
  return {};
}

}  // namespace

extern const Endpoint kResponses = {
    .method = "POST",
    .pattern = "/v1/responses",
    .meaning = "the next message of a conversation, as OpenAI's newer clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) {
      with_referenced_items(context, writer, [&context, writer](const std::shared_ptr<const std::string>& body) {
        return start_responses(context, writer, body, nullptr);
      });
    },
    .fields = [] { return beside_common_fields(responses_fields()); },
};

}  // namespace kvasir::server::api
