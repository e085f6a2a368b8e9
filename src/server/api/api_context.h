// Everything that the endpoints share.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kvasir/engine.h"
#include "server/api/chosen_adapter.h"
#include "server/api/generation_request.h"
#include "server/api/tool_calls/detect_syntax.h"
#include "server/api/tool_calls/known_tools.h"
#include "server/auth/rate_limiter.h"
#include "server/http/response_writer.h"
#include "server/id_source.h"
#include "server/limits.h"
#include "server/observe/dropped_lines.h"
#include "server/observe/metrics.h"
#include "server/observe/refusal_log.h"
#include "server/request_memory.h"

namespace kvasir::server::observe {
class Tracer;
}

namespace kvasir::server::stored {
class StoreThread;
}

namespace kvasir::server::api {

class AdapterLoader;
class LibraryWorker;
class ServedModels;
class StoredThings;

// A model's context; references and pointers are shared by all models of the server. Outlives every request.
struct ApiContext {
  Engine& engine;
  const Limits& limits;
  const KvParams& kv;  // of requests that do not say
  observe::ServerMetrics& metrics;
  observe::RefusalLog& refusals;
  auth::RateLimiter& rate_limiter;
  RequestMemory& memory;
  IdSource& ids;
  std::string model_name;      // in answers
  std::int64_t created_s = 0;  // when it was loaded, Unix time
  std::string fingerprint;
  std::string version = {};                 // of the program
  bool has_vllm_metrics = false;            // beside its own
  std::int64_t memory_budget_bytes = 0;     // of the whole process; 0: nobody said
  const observe::Tracer* tracer = nullptr;  // null: nothing is traced
  std::vector<observe::DroppedLines> logs = {};
  const std::atomic<bool>& draining;
  // How the model's templates write calls.
  std::shared_ptr<ModelSyntaxes> syntaxes = std::make_shared<ModelSyntaxes>();
  std::shared_ptr<KnownTools> tools = std::make_shared<KnownTools>();
  std::shared_ptr<observe::ModelTimes> times = std::make_shared<observe::ModelTimes>();
  ServedModels* models = nullptr;  // all of the server; null: this one alone
  bool takes_any_name = false;     // requests may name a model that nobody knows
  StoredThings* stored = nullptr;  // null: nothing is stored
  std::int32_t max_batch_lines = 8;  // of /v1/batches, in the engine at once
  std::int32_t num_slots = 1;        // choices that the engine computes at once, at most
  bool allows_pull = false;  // whoever may ask may also fetch and delete models
  LibraryWorker* library = nullptr;  // null: models are neither fetched nor deleted
  AdapterLoader* adapters = nullptr;  // null: adapters neither come nor go
  std::shared_ptr<DefaultAdapter> default_adapter = std::make_shared<DefaultAdapter>();
};

// The contexts of all models of the server, in their order.
std::vector<const ApiContext*> contexts_of_models(const ApiContext& context);
// Requires: something is stored.
stored::StoreThread& store_of(const ApiContext& context);
// Whether requests for a model of that name are for this one.
bool serves_name(const ApiContext& context, std::string_view name);
// The model's adapter of that name; empty: it has none.
std::string adapter_of(const ApiContext& context, std::string_view name);
// The model's name in the request's answer: its adapter's, if it has one.
std::string answering_name(const ApiContext& context, const GenerationRequest& request);
// The models that are served, as messages list them: `"a", "b" and 3 others`.
std::string served_names(const ApiContext& context);
// Error (404, model_not_found) unless they are, or the name is empty.
ApiStatus check_model(const ApiContext& context, const std::string& name);
// Counts a request with so many prompt tokens against the limits of its tenant; what is left goes into
// headers. Error: 429.
ApiStatus admit(const ApiContext& context, http::ResponseWriter& writer, std::int64_t num_prompt_tokens);
// Before anything is done for a request: 429 if the limits of its tenant let none through now. Takes nothing.
ApiStatus check_limits(const ApiContext& context, http::ResponseWriter& writer);
// Takes so much of what there is for requests for an answer, beside what the body has. Errors: 413, 503.
ApiStatus plan_answer(const http::ResponseWriter& writer, std::int64_t bytes, RequestMemory::Share& share);
void add_warnings(const Warnings& warnings, http::ResponseWriter& writer);
// Bounds the answer by what its prompt leaves of the context, unless limits are strict; a warning says when
// that changes it. Error: check_context()'s.
ApiStatus fit_context(const ApiContext& context, Request& request, std::string_view prompt_field,
                      Warnings& warnings);
// To what a request lacks, the field it has that nobody knows: the name may be misspelt.
ApiError with_unknown_field(ApiError error, const Warnings& warnings);

// Answers with what the handler could not do, if there is anything.
void respond_unless(const ApiStatus& status, http::ResponseWriter& writer);

// The body as an endpoint's parser reads it, with the model's sampling where it says nothing. Warnings go
// with the answer. Errors: check_limits(), the
// parser's, and another model's name.
template <class Parse, class Read = std::invoke_result_t<Parse, std::string_view, const Limits&, Warnings&>>
Read read_request(const ApiContext& context, http::ResponseWriter& writer, Parse parse) {
  KVASIR_CHECKED(check_limits(context, writer));
  Warnings warnings;
  auto parsed = parse(writer.request().body, context.limits, warnings);
  if (!parsed) return std::unexpected(with_unknown_field(std::move(parsed).error(), warnings));
  auto request = *std::move(parsed);
  if constexpr (std::derived_from<typename Read::value_type, GenerationRequest>) {
    fill_sampling(request.sampling, context.engine.model_info().default_sampling);
  }
  add_warnings(warnings, writer);
  KVASIR_CHECKED(check_model(context, request.model));
  return request;
}

}  // namespace kvasir::server::api
