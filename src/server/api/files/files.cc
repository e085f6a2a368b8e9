// POST, GET /v1/files, GET, DELETE /v1/files/*, GET /v1/files/*/content

#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/files/download.h"
#include "server/api/files/stored_file.h"
#include "server/api/files/upload.h"
#include "server/api/list_page.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

// What has its body, or one that reads a body that came as a whole.
ApiResult<std::shared_ptr<Upload>> read_upload(const ApiContext& context, const http::Request& request) {
  if (request.sink != nullptr) return std::static_pointer_cast<Upload>(request.sink);
  KVASIR_TRY(std::shared_ptr<Upload> upload, Upload::open(context, request, request.tenant));
  KVASIR_CHECKED(upload->read(request.body));
  return upload;
}

ApiStatus upload_file(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const std::shared_ptr<Upload> upload, read_upload(context, writer->request()));
  KVASIR_CHECKED(upload->finish());
  const auto keep = [upload](stored::ObjectStore& store) { return upload->keep(store); };
  ask_store(context, writer, keep, [writer](std::string json) { writer->respond({.body = std::move(json)}); });
  return {};
}

void list_files(ApiContext& context, const Writer& writer) {
  const auto page = read_page_query(writer->request(), 10'000, 10'000);
  if (!page) return writer->respond(error_response(page.error(), writer->request()));
  const std::string purpose = http::query_value(writer->request().query, "purpose").value_or("");
  const auto list = [owner = owner_of(*writer), page = *page, purpose](stored::ObjectStore& store) {
    return stored_page(store, stored::Kind::kFile, owner, page, purpose);
  };
  ask_store(context, writer, list, [writer](std::string body) { writer->respond({.body = std::move(body)}); });
}

void get_file(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto find = [owner = owner_of(*writer), id](stored::ObjectStore& store) { return find_file(store, owner, id); };
  ask_store(context, writer, find, [writer](stored::Object file) { writer->respond({.body = std::move(file.json)}); });
}

void get_content(ApiContext& context, const Writer& writer, const std::string& id) {
  std::make_shared<Download>(context, writer, id)->start();
}

void delete_file(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto erase = [owner = owner_of(*writer), id](stored::ObjectStore& store) -> ApiResult<bool> {
    KVASIR_TRY(const stored::Object file, find_file(store, owner, id));
    if (file.is_pinned) {
      return std::unexpected(ApiError{409, "the file belongs to a batch that runs: cancel that first", "file_id"});
    }
    const auto erased = store.erase(stored::Kind::kFile, owner, id);
    if (!erased) return std::unexpected(to_store_error(erased.error()));
    return true;
  };
  ask_store(context, writer, erase, [writer, id](bool) {
    std::string body;
    JsonWriter(body).begin_object().member("id", id).member("object", "file").member("deleted", true).end_object();
    writer->respond({.body = std::move(body)});
  });
}

}  // namespace

extern const Endpoint kUploadFile = {
    .method = "POST",
    .pattern = "/v1/files",
    .meaning = "upload a file of requests for a batch, as multipart/form-data",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(upload_file(context, writer), *writer); },
    .open_sink = [](ApiContext& context, const http::Request& head,
                    const auth::Tenant& tenant) -> ApiResult<std::shared_ptr<http::BodySink>> {
      return Upload::open(context, head, tenant);
    }};
extern const Endpoint kFiles = {
    .method = "GET",
    .pattern = "/v1/files",
    .meaning = "the key's files; `purpose`, `limit`, `after`, `order`",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { list_files(context, writer); }};
extern const Endpoint kFileContent = {.method = "GET",
                                      .pattern = "/v1/files/*/content",
                                      .meaning = "the bytes of a file",
                                      .answer = get_content};
extern const Endpoint kFile = {
    .method = "GET", .pattern = "/v1/files/*", .meaning = "what is known of a file", .answer = get_file};
extern const Endpoint kDeleteFile = {
    .method = "DELETE", .pattern = "/v1/files/*", .meaning = "delete a file", .answer = delete_file};

}  // namespace kvasir::server::api
