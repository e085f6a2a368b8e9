// GET /version, as vLLM answers it.
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {
namespace {

void answer_version(const ApiContext& context, const Writer& writer) {
  std::string body;
  JsonWriter(body).begin_object().member("version", context.version).end_object();
  writer->respond({.body = std::move(body)});
}

}  // namespace

extern const Endpoint kVersion = {
    .method = "GET",
    .pattern = "/version",
    .meaning = "the version of the server",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_version(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::api
