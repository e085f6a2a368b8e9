// POST, GET /v1/files, GET, DELETE /v1/files/*, GET /v1/files/*/content

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "server/api/endpoint.h"
#include "server/api/files/stored_file.h"
#include "server/api/list_page.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"
#include "server/http/form_reader.h"

namespace kvasir::server::api {
namespace {

const http::FormPart* find_part(const std::vector<http::FormPart>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &http::FormPart::name);
  return found == parts.end() ? nullptr : &*found;
}

// Seconds from now; 0: it does not expire.
ApiResult<std::int64_t> expiry_of(const std::vector<http::FormPart>& parts) {
  const http::FormPart* const part = find_part(parts, "expires_after[seconds]");
  if (part == nullptr) return 0;
  constexpr std::int64_t kLeast = 3600, kMost = 2'592'000;
  std::int64_t seconds = 0;
  const char* const end = part->content.data() + part->content.size();
  const auto [rest, error] = std::from_chars(part->content.data(), end, seconds);
  if (error == std::errc() && rest == end && seconds >= kLeast && seconds <= kMost) return seconds;
  return bad_request(fmt::format("expires_after[seconds] must be a whole number from {} to {}, got '{}'", kLeast,
                                 kMost, printable(part->content.substr(0, 32))),
                     "expires_after");
}

struct Upload {
  stored::Object object;
  std::vector<stored::Part> parts;
};

ApiResult<std::shared_ptr<Upload>> read_upload(const ApiContext& context, const http::ResponseWriter& writer) {
  KVASIR_TRY(const std::vector<http::FormPart> form, http::parse_form(writer.request()));
  const http::FormPart* const purpose = find_part(form, "purpose");
  if (purpose == nullptr) return bad_request("purpose is missing", "purpose", "missing_parameter");
  if (purpose->content != kBatchPurpose) {
    return bad_request(
        fmt::format("purpose must be \"batch\" here, got \"{}\"", printable(purpose->content.substr(0, 64))), "purpose");
  }
  const http::FormPart* const file = find_part(form, "file");
  if (file == nullptr) return bad_request("file is missing", "file", "missing_parameter");
  if (file->content.empty()) return bad_request("file must not be empty", "file");
  KVASIR_TRY(const std::int64_t expiry_s, expiry_of(form));
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  const FileFacts facts{.id = context.ids.next("file-"),
                        .name = file->file_name.empty() ? "file" : printable(file->file_name),
                        .purpose = kBatchPurpose,
                        .bytes = std::ssize(file->content),
                        .created_s = now,
                        .expires_s = expiry_s == 0 ? 0 : now + expiry_s};
  return std::make_shared<Upload>(Upload{file_object(facts, owner_of(writer)), parts_of(file->content)});
}

void upload_file(ApiContext& context, const Writer& writer) {
  const auto upload = read_upload(context, *writer);
  if (!upload) return writer->respond(error_response(upload.error(), writer->request()));
  const auto keep = [upload = *upload](stored::ObjectStore& store) -> ApiResult<std::string> {
    const Status added = store.add(upload->object, upload->parts);
    if (!added) return std::unexpected(to_store_error(added.error()));
    return upload->object.json;
  };
  ask_store(context, writer, keep, [writer](std::string json) { writer->respond({.body = std::move(json)}); });
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

// The content is in memory until it has left, so it counts among what answers take.
void get_content(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto share = std::make_shared<RequestMemory::Share>(context.memory, writer->request().tenant.name);
  const auto read = [owner = owner_of(*writer), id, share](stored::ObjectStore& store) -> ApiResult<std::string> {
    KVASIR_TRY(const stored::Object file, find_file(store, owner, id));
    const auto num_bytes = store.content_bytes(file.id);
    if (!num_bytes) return std::unexpected(to_store_error(num_bytes.error()));
    KVASIR_CHECKED(share->resize(2 * *num_bytes));
    std::string content;
    content.reserve(static_cast<std::size_t>(*num_bytes));
    for (std::int64_t part = 0;;) {
      const auto piece = store.read(file.id, part, kFilePartBytes);
      if (!piece) return std::unexpected(to_store_error(piece.error()));
      content += piece->bytes;
      if (piece->is_last) return content;
      part = piece->next;
    }
  };
  ask_store(context, writer, read, [writer, share](std::string content) {
    writer->respond({.content_type = "application/octet-stream", .body = std::move(content)});
    share->set(0);
  });
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
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { upload_file(context, writer); },
    .takes_file = true};
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
