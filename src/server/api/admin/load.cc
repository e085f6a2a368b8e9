// GET /load, as vLLM answers it.
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api/admin/visible_stats.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {
namespace {

void answer_load(const ApiContext& context, const Writer& writer) {
  const EngineStats stats =
      visible_stats(total_stats(context), context.metrics, writer->request().tenant);
  std::string body;
  JsonWriter(body).begin_object().member("server_load", stats.num_running + stats.num_waiting).end_object();
  writer->respond({.body = std::move(body)});
}

}  // namespace

extern const Endpoint kLoad = {
    .method = "GET",
    .pattern = "/load",
    .meaning = "how many answers are being made or wait for it, for routers of requests",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_load(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::api
