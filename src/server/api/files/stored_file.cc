#include "server/api/files/stored_file.h"

#include <utility>

#include "base/json_writer.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {

std::string file_json(const FileFacts& facts) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("id", facts.id).member("object", "file").member("bytes", facts.bytes);
  json.member("created_at", facts.created_s).member("filename", facts.name).member("purpose", facts.purpose);
  json.member("status", "processed").member_null("status_details").key("expires_at");
  facts.expires_s == 0 ? json.null() : json.value(facts.expires_s);
  json.end_object();
  return body;
}

stored::Object file_object(const FileFacts& facts, std::string owner) {
  return {.kind = stored::Kind::kFile,
          .id = facts.id,
          .owner = std::move(owner),
          .parent = std::string(facts.purpose),
          .created_s = facts.created_s,
          .expires_s = facts.expires_s,
          .json = file_json(facts)};
}

ApiResult<stored::Object> find_file(stored::ObjectStore& store, const std::string& owner, const std::string& id) {
  auto found = store.find(stored::Kind::kFile, owner, id);
  if (!found) return std::unexpected(to_store_error(std::move(found).error()));
  if (!found->has_value()) return std::unexpected(no_such("File", id, "file_id"));
  return std::move(**found);
}

std::vector<stored::Part> parts_of(std::string_view content) {
  std::vector<stored::Part> parts;
  while (!content.empty()) {
    const std::string_view part = content.substr(0, kFilePartBytes);
    parts.push_back({.name = {}, .bytes = std::string(part)});
    content.remove_prefix(part.size());
  }
  return parts;
}

}  // namespace kvasir::server::api
