// GET /health, /ping, /health/live and /health/ready
#include <algorithm>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {
namespace {

void answer_live(const Writer& writer) { writer->respond({.body = R"({"status":"live"})"}); }

// 503 once the server drains.
void answer_ready(const ApiContext& context, const Writer& writer) {
  if (!context.draining) return writer->respond({.body = R"({"status":"ready"})"});
  const std::int64_t at_stop = context.metrics.num_answering_at_stop;
  const std::int64_t left =
      std::clamp<std::int64_t>(context.metrics.num_answering - 1, 0, at_stop);  // without this
  std::string body;
  JsonWriter(body)
      .begin_object()
      .member("status", "draining")
      .member("percent", at_stop == 0 ? 100 : 100 * (at_stop - left) / at_stop)
      .end_object();
  writer->respond({.status = 503, .body = std::move(body)});
}

}  // namespace

extern const Endpoint kHealth = {
    .method = "GET",
    .pattern = "/health",
    .meaning = "as /health/ready, for clients that know no other",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_ready(context, writer); },
    .api = "kvasir",
};

extern const Endpoint kPing = {
    .method = "GET",
    .pattern = "/ping",
    .meaning = "the same under the name that SageMaker asks for",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_ready(context, writer); },
    .api = "kvasir",
};

extern const Endpoint kHealthLive = {
    .method = "GET",
    .pattern = "/health/live",
    .meaning = "200 as long as the process answers",
    .answer = [](ApiContext&, const Writer& writer, const std::string&) { answer_live(writer); },
    .api = "kvasir",
};

extern const Endpoint kHealthReady = {
    .method = "GET",
    .pattern = "/health/ready",
    .meaning = "200 when requests are taken, 503 while the server drains",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { answer_ready(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::api
