#include "server/offline_api.h"

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <ctime>
#include <utility>

#include "server/api/api_context.h"
#include "server/api/background_writer.h"
#include "server/api/openai/answer_json.h"
#include "server/api_error.h"
#include "server/auth/rate_limiter.h"
#include "server/http/router.h"
#include "server/id_source.h"
#include "server/limits.h"
#include "server/observe/metrics.h"
#include "server/routes.h"

namespace kvasir::server {
struct OfflineApi::Impl {
  Impl(Engine& engine, std::string model_name, KvParams kv_in)
      : kv(std::move(kv_in)),
        api{.engine = engine,
            .limits = limits,
            .kv = kv,
            .metrics = metrics,
            .refusals = refusals,
            .rate_limiter = rate_limiter,
            .memory = memory,
            .ids = ids,
            .model_name = std::move(model_name),
            .created_s = static_cast<std::int64_t>(std::time(nullptr)),
            .fingerprint = api::system_fingerprint(engine.model_info()),
            .draining = draining},
        router(make_routes(api)) {}

  const Limits limits;
  const KvParams kv;
  observe::ServerMetrics metrics;
  observe::RefusalLog refusals{[](std::string_view) {}};  // the file of answers says it
  auth::RateLimiter rate_limiter;
  RequestMemory memory{0};
  IdSource ids;
  const std::atomic<bool> draining{false};
  api::ApiContext api;
  const http::Router router;
  boost::asio::thread_pool thread{1};
};

OfflineApi::OfflineApi(Engine& engine, std::string model_name, KvParams kv)
    : impl_(std::make_unique<Impl>(engine, std::move(model_name), std::move(kv))) {}

OfflineApi::~OfflineApi() { impl_->thread.join(); }

void OfflineApi::ask(http::Request request, std::function<void(const http::Response&)> answered) {
  auto writer = std::make_shared<api::BackgroundWriter>(
      impl_->thread.get_executor(), std::move(request),
      [answered = std::move(answered)](const http::Response* response) { answered(*response); });
  writer->post([this, writer] { impl_->router.handle(writer); });
}

}  // namespace kvasir::server
