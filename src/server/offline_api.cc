#include "server/offline_api.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <ctime>
#include <utility>

#include "server/api/api_context.h"
#include "server/api/openai/answer_json.h"
#include "server/api_error.h"
#include "server/auth/rate_limiter.h"
#include "server/http/router.h"
#include "server/id_source.h"
#include "server/limits.h"
#include "server/observe/metrics.h"
#include "server/routes.h"

namespace kvasir::server {
namespace {

// Answers by a callback. All its tasks run on one thread, in the order they came.
class OfflineResponseWriter final : public http::ResponseWriter,
                                    public std::enable_shared_from_this<OfflineResponseWriter> {
 public:
  OfflineResponseWriter(boost::asio::thread_pool& thread, http::Request request,
                        std::function<void(const http::Response&)> answered)
      : thread_(thread), request_(std::move(request)), answered_(std::move(answered)) {}

  const http::Request& request() const override { return request_; }
  Clock::time_point received_at() const override { return received_at_; }
  void note_generation(const observe::GenerationRecord&) override {}
  void await_generation() override {}
  void add_header(http::Header) override {}
  void post(std::function<void()> task) override {
    boost::asio::post(thread_, [self = shared_from_this(), task = std::move(task)] { task(); });
  }
  void on_abort(std::function<void()> callback) override { abort_ = std::move(callback); }
  void when_sent(std::function<void()> callback) override { callback(); }
  void when_quiet(std::chrono::milliseconds, std::function<void()>) override {}

  void respond(http::Response response) override {
    if (const auto answered = std::exchange(answered_, nullptr)) answered(response);
    abort_ = nullptr;
  }
  // There is nobody to stream to.
  void begin_stream() override {
    const auto abort = std::exchange(abort_, nullptr);
    respond(error_response({400, "stream: there is no stream in a file of requests", "stream"}, request()));
    if (abort) abort();
  }
  void write(std::span<const http::Event>) override {}
  void ping() override {}
  void end_stream() override {}
  void fail_stream() override {}

 private:
  boost::asio::thread_pool& thread_;
  const http::Request request_;
  std::function<void(const http::Response&)> answered_;
  std::function<void()> abort_;
  const Clock::time_point received_at_ = Clock::now();
};

}  // namespace

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
  auto writer =
      std::make_shared<OfflineResponseWriter>(impl_->thread, std::move(request), std::move(answered));
  writer->post([this, writer] { impl_->router.handle(writer); });
}

}  // namespace kvasir::server
