// POST, GET /v1/batches, GET /v1/batches/*, POST /v1/batches/*/cancel

#include <ctime>
#include <utility>

#include "server/api/batches/batch.h"
#include "server/api/batches/batch_request.h"
#include "server/api/batches/batch_runner.h"
#include "server/api/endpoint.h"
#include "server/api/files/stored_file.h"
#include "server/api/list_page.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

// Pins the input file: what a batch reads does not leave.
ApiResult<Batch> store_batch(stored::ObjectStore& store, const Batch& batch) {
  const auto found = find_file(store, batch.tenant.key_id, batch.input_file_id);
  if (!found) {
    ApiError error = found.error();
    if (error.status == 404) error.param = "input_file_id";
    return std::unexpected(std::move(error));
  }
  const stored::Object& file = *found;
  if (file.parent != kBatchPurpose) {
    return bad_request("input_file_id: the file's purpose is not \"batch\"", "input_file_id");
  }
  if (const Status pinned = store.pin(file.id, true); !pinned) return std::unexpected(to_store_error(pinned.error()));
  const Status added = store.add(batch_object(batch, true), {});
  if (added) return batch;
  static_cast<void>(store.pin(file.id, false));
  return std::unexpected(to_store_error(added.error()));
}

ApiStatus create_batch(ApiContext& context, const Writer& writer) {
  Warnings warnings;
  KVASIR_TRY(const BatchRequest request, parse_batch_request(writer->request().body, context.limits, warnings));
  add_warnings(warnings, *writer);
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  Batch batch{.id = context.ids.next("batch_"),
              .endpoint = request.endpoint,
              .input_file_id = request.input_file_id,
              .completion_window = request.completion_window,
              .metadata_json = request.metadata_json,
              .times = {{"created_at", now}, {"expires_at", now + request.window_s}},
              .tenant = writer->request().tenant};
  // Once it is stored it runs, whether or not its client is still there.
  const auto begin = [&context, batch](stored::ObjectStore& store) {
    ApiResult<Batch> stored = store_batch(store, batch);
    if (stored) context.stored->batches().add(*stored);
    return stored;
  };
  ask_store(context, writer, begin, [writer](const Batch& stored) { writer->respond({.body = batch_json(stored)}); });
  return {};
}

ApiResult<stored::Object> find_batch(stored::ObjectStore& store, const std::string& owner, const std::string& id) {
  auto found = store.find(stored::Kind::kBatch, owner, id);
  if (!found) return std::unexpected(to_store_error(std::move(found).error()));
  if (!found->has_value()) return std::unexpected(no_such("Batch", id, "batch_id"));
  return std::move(**found);
}

void get_batch(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto find = [owner = owner_of(*writer), id](stored::ObjectStore& store) { return find_batch(store, owner, id); };
  ask_store(context, writer, find, [writer](stored::Object batch) { writer->respond({.body = std::move(batch.json)}); });
}

void list_batches(ApiContext& context, const Writer& writer) {
  const auto page = read_page_query(writer->request(), 20, 100);
  if (!page) return writer->respond(error_response(page.error(), writer->request()));
  const auto list = [owner = owner_of(*writer), page = *page](stored::ObjectStore& store) {
    return stored_page(store, stored::Kind::kBatch, owner, page, {});
  };
  ask_store(context, writer, list, [writer](std::string body) { writer->respond({.body = std::move(body)}); });
}

ApiResult<std::string> cancelling_batch(stored::ObjectStore& store, const std::string& owner, const std::string& id,
                                        const Limits& limits, std::int64_t now) {
  KVASIR_TRY(const stored::Object object, find_batch(store, owner, id));
  KVASIR_TRY(Batch batch, batch_of(object, limits));
  if (!object.is_pinned) {
    return std::unexpected(
        ApiError{409, "the batch has ended: its status is " + batch.status, "batch_id", "invalid_status"});
  }
  if (batch.status == "cancelling") return object.json;
  batch.status = "cancelling";
  batch.times["cancelling_at"] = now;
  std::string json = batch_json(batch);
  if (const auto updated = store.update(id, json, true); !updated) {
    return std::unexpected(to_store_error(updated.error()));
  }
  return json;
}

void cancel_batch(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  const auto cancel = [&context, owner = owner_of(*writer), id, now](stored::ObjectStore& store) {
    ApiResult<std::string> json = cancelling_batch(store, owner, id, context.limits, now);
    if (json) context.stored->batches().cancel(id, now);
    return json;
  };
  ask_store(context, writer, cancel, [writer](std::string json) { writer->respond({.body = std::move(json)}); });
}

}  // namespace

extern const Endpoint kCreateBatch = {
    .method = "POST",
    .pattern = "/v1/batches",
    .meaning = "answer the requests of a file, behind all others",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(create_batch(context, writer), *writer); },
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(batch_fields()), .shared = {}}; }};
extern const Endpoint kBatches = {
    .method = "GET",
    .pattern = "/v1/batches",
    .meaning = "the key's batches; `limit`, `after`",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { list_batches(context, writer); }};
extern const Endpoint kCancelBatch = {.method = "POST",
                                      .pattern = "/v1/batches/*/cancel",
                                      .meaning = "ask nothing more of a batch",
                                      .answer = cancel_batch};
extern const Endpoint kBatch = {
    .method = "GET", .pattern = "/v1/batches/*", .meaning = "how far a batch is", .answer = get_batch};

}  // namespace kvasir::server::api
