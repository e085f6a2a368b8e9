#include "server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory_reserve.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "server/api/adapter_loader.h"
#include "server/api/api_context.h"
#include "server/api/library_worker.h"
#include "server/api/openai/answer_json.h"
#include "server/api/stored_things.h"
#include "server/auth/key_ring.h"
#include "server/carriers/grpc/grpc_port.h"
#include "server/carriers/sse.h"
#include "server/carriers/websocket/upgrade.h"
#include "server/config_check.h"
#include "server/http/cors.h"
#include "server/http/host_check.h"
#include "server/http/listener.h"
#include "server/http/router.h"
#include "server/http/session.h"
#include "server/http/tls.h"
#include "server/id_source.h"
#include "server/observe/metrics.h"
#include "server/observe/tracing/tracer.h"
#include "server/routes.h"
#include "server/stop_signal.h"

namespace kvasir::server {
namespace {

// How long answers that are complete may take to leave when the server stops, and when it stops at once.
constexpr std::chrono::milliseconds kFlushTime{1000};
constexpr std::chrono::milliseconds kHurriedFlushTime{200};
// The same for traces.
constexpr std::chrono::milliseconds kTraceTime{2000};
constexpr std::chrono::milliseconds kHurriedTraceTime{200};

void warn_on_stderr(std::string_view line) { std::fputs(fmt::format("kvasir: {}\n", line).c_str(), stderr); }

std::string served_name(const ServerConfig& config, const ModelInfo& model) {
  if (!config.served_model_name.empty()) return config.served_model_name;
  return model.name.empty() ? "default" : model.name;
}

std::vector<observe::DroppedLines> counted_logs(const ServerConfig& config,
                                                const observe::AccessLog* access_log) {
  std::vector<observe::DroppedLines> logs = config.logs;
  if (access_log != nullptr) {
    logs.push_back({.log = "access", .count = [access_log] { return access_log->num_dropped(); }});
  }
  return logs;
}

}  // namespace

struct Server::Impl {
  // Files that are opened before the server. Each is null where it is not asked for.
  struct Files {
    std::unique_ptr<auth::KeyRing> keys;
    std::unique_ptr<http::Tls> tls;
    std::unique_ptr<observe::AccessLog> access_log;
    std::unique_ptr<observe::Tracer> tracer;
  };

  Impl(Engine& first_in, std::unique_ptr<api::ServedModels> models_in, ServerConfig config_in,
       std::vector<http::OriginPattern> origins, Files files_in)
      : first(first_in),
        models(std::move(models_in)),
        config(std::move(config_in)),
        files(std::move(files_in)),
        cors(std::move(origins)),
        memory(config.request_memory_bytes),
        contexts(make_contexts()),
        router(make_routes(contexts.front()), config.base_path),
        ollama_router(make_ollama_routes(contexts.front()), config.base_path) {}

  // Connections that go behind the store give it nothing more.
  ~Impl() {
    adapters.reset();
    library.reset();
    stored.reset();
    for (api::ApiContext& context : contexts) context.stored = nullptr;
    for (api::ApiContext& context : added_contexts) context.stored = nullptr;
  }

  std::deque<api::ApiContext> make_contexts();
  api::ApiContext context_of(Engine& engine, std::string name);
  api::ApiContext* context_of_added(const api::ServedModel& model);
  void drain_engines(std::int64_t timeout_ms);

  Status open_grpc();
  Status open_ollama();
  Result<std::vector<std::thread>> start_io_threads();
  void keep_things(std::unique_ptr<stored::ObjectStore> store);
  void open_adapters();
  http::SessionContext context_with(const http::Router& used) {
    return {.limits = config.limits,
            .router = used,
            .admission = files.keys.get(),
            .cors = cors,
            .hosts = hosts,
            .ids = ids,
            .metrics = metrics,
            .memory = memory,
            .connections = connections,
            .access_log = files.access_log.get(),
            .request_log = request_log,
            .tracer = files.tracer.get(),
            .upgrade = web_socket,
            .events = carriers::kServerSentEvents,
            .draining = draining};
  }
  void begin_session(boost::asio::ip::tcp::socket socket, http::ConnectionCounter::Slot slot,
                     const http::SessionContext& context);
  void serve_io();
  void note_failure(const char* what);
  void drain();
  void flush();

  Engine& first;
  const std::unique_ptr<api::ServedModels> models;  // null: the first alone
  const ServerConfig config;
  const Files files;
  const http::Cors cors;
  observe::ServerMetrics metrics;
  observe::RefusalLog refusals{config.warn ? config.warn : warn_on_stderr};
  const observe::RequestLog request_log{config.log_request};
  RequestMemory memory;
  http::ConnectionCounter connections{config.limits};
  auth::RateLimiter rate_limiter;
  IdSource ids;
  std::atomic<bool> draining{false};
  std::atomic<int> num_stops{0};
  StopSignal stop_signal;
  std::deque<api::ApiContext> contexts;        // of each model
  std::deque<api::ApiContext> added_contexts;  // of models that were pulled; the library's thread makes them
  const http::Router router, ollama_router;
  http::HostCheck hosts{config.allowed_hosts, cors};
  const carriers::WebSocketUpgrade web_socket;
  const http::SessionContext session_context = context_with(router), ollama_context = context_with(ollama_router);
  // Last, so that they go first: connections borrow from everything above.
  boost::asio::io_context io;
  http::Listener listener{io, connections, [this](auto socket, auto slot) {
                            begin_session(std::move(socket), std::move(slot), session_context);
                          }};
  std::unique_ptr<http::Listener> ollama_listener;  // null: not asked for
  std::unique_ptr<carriers::GrpcPort> grpc;  // null: not asked for
  std::unique_ptr<api::StoredThings> stored;
  std::unique_ptr<api::LibraryWorker> library;  // null: models are neither fetched nor deleted
  std::unique_ptr<api::AdapterLoader> adapters;  // null: adapters neither come nor go
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Status Server::check(const ServerConfig& config) {
  KVASIR_CHECKED(check_config(config));
  KVASIR_CHECKED(http::parse_origin_patterns(config.cors_origins));
  KVASIR_CHECKED(check_files(config));
  KVASIR_CHECKED(check_port(config.host, config.port, "--port", config.limits));
  if (!config.grpc_port) return {};
  return check_port(config.host, *config.grpc_port, "--grpc-port", config.limits);
}

Result<std::unique_ptr<Server>> Server::create(Engine& engine, ServerConfig config) {
  return open(engine, nullptr, std::move(config));
}

Result<std::unique_ptr<Server>> Server::create(std::vector<api::ServedModel> models,
                                               api::ServedModels::Config models_config, ServerConfig config) {
  Engine& first = *models.front().engine;
  config.served_model_name = models.front().name;
  return open(first, std::make_unique<api::ServedModels>(std::move(models), models_config), std::move(config));
}

Result<std::unique_ptr<Server>> Server::open(Engine& engine, std::unique_ptr<api::ServedModels> models,
                                             ServerConfig config) {
  KVASIR_CHECKED(check_config(config));
  KVASIR_TRY(std::vector<http::OriginPattern> origins, http::parse_origin_patterns(config.cors_origins));
  const auth::KeyRing::Warn warn = config.warn ? config.warn : warn_on_stderr;
  Impl::Files files;
  if (!config.api_keys_file.empty()) {
    KVASIR_TRY(files.keys, auth::KeyRing::open(config.api_keys_file, warn));
  }
  if (!config.tls_certificate_file.empty()) {
    KVASIR_TRY(files.tls, http::Tls::open(config.tls_certificate_file, config.tls_key_file, warn));
  }
  if (!config.access_log_file.empty()) {
    KVASIR_TRY(files.access_log, observe::AccessLog::open(config.access_log_file, warn));
  }
  if (config.tracing) {
    KVASIR_TRY(files.tracer, observe::Tracer::create(*config.tracing,
                                                     {.model_name = served_name(config, engine.model_info()),
                                                      .is_https = files.tls != nullptr},
                                                     warn));
  }
  KVASIR_TRY(auto store, open_store(config));
  const bool asks_for_keys = files.keys != nullptr;
  auto impl = std::make_unique<Impl>(engine, std::move(models), std::move(config), std::move(origins), std::move(files));
  try {
    impl->keep_things(std::move(store));
    if (impl->models != nullptr && impl->config.library.pull != nullptr) {
      impl->library = std::make_unique<api::LibraryWorker>(impl->config.library, *impl->models);
      for (api::ApiContext& context : impl->contexts) context.library = impl->library.get();
    }
    if (!impl->config.adapter_folders.empty()) impl->open_adapters();
  } catch (const boost::system::system_error& error) {  // Boost's, no std::system_error
    return make_error(ErrorKind::kMachine, fmt::format("no thread can be started: {}", error.code().message()));
  }
  if (!impl->stop_signal.valid()) {
    return make_error(ErrorKind::kMachine, fmt::format("eventfd: {}", std::strerror(errno)));
  }
  KVASIR_CHECKED(impl->listener.open(impl->config.host, impl->config.port));
  if (impl->config.grpc_port) KVASIR_CHECKED(impl->open_grpc());
  if (impl->config.ollama_port) KVASIR_CHECKED(impl->open_ollama());
  impl->hosts.set_loopback(impl->listener.is_loopback());
  if (!impl->listener.is_loopback() && !asks_for_keys) {
    warn(fmt::format("{} is reachable from other machines, and this server asks nobody for a key",
                     impl->config.host));
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::ping(std::function<void()> pong) { boost::asio::post(impl_->io, std::move(pong)); }

std::uint16_t Server::port() const { return impl_->listener.port(); }

std::optional<std::uint16_t> Server::grpc_port() const {
  if (impl_->grpc == nullptr) return std::nullopt;
  return impl_->grpc->port();
}

std::optional<std::uint16_t> Server::ollama_port() const {
  if (impl_->ollama_listener == nullptr) return std::nullopt;
  return impl_->ollama_listener->port();
}

void Server::stop() {
  ++impl_->num_stops;
  impl_->stop_signal.raise();
}

Status Server::run() {
  Impl& impl = *impl_;
  impl.listener.start();
  if (impl.ollama_listener != nullptr) impl.ollama_listener->start();
  if (impl.grpc != nullptr) impl.grpc->start();
  KVASIR_TRY(std::vector<std::thread> threads, impl.start_io_threads());
  impl.stop_signal.wait();
  impl.metrics.num_answering_at_stop = impl.metrics.num_answering.load();
  impl.draining = true;
  impl.stored->batches().stop();
  if (impl.grpc != nullptr) impl.grpc->begin_drain();
  impl.drain();
  impl.flush();
  if (impl.grpc != nullptr) impl.grpc->shut_down();
  impl.io.stop();
  for (std::thread& thread : threads) thread.join();
  if (impl.files.tracer != nullptr) {
    impl.files.tracer->finish(impl.num_stops > 1 ? kHurriedTraceTime : kTraceTime);
  }
  return {};
}

std::deque<api::ApiContext> Server::Impl::make_contexts() {
  std::deque<api::ApiContext> made;
  if (models == nullptr) {
    made.push_back(context_of(first, served_name(config, first.model_info())));
    return made;
  }
  std::vector<api::ApiContext*> bound;
  for (const std::size_t i : models->indices()) {
    made.push_back(context_of(*models->model(i).engine, models->model(i).name));
    made.back().models = models.get();
    bound.push_back(&made.back());
  }
  made.front().takes_any_name = models->takes_any_name();
  models->bind(bound, [this](const api::ServedModel& model) { return context_of_added(model); });
  return made;  // moving a deque leaves its elements where they are
}

api::ApiContext* Server::Impl::context_of_added(const api::ServedModel& model) {
  api::ApiContext& added = added_contexts.emplace_back(context_of(*model.engine, model.name));
  added.models = models.get();
  added.max_batch_lines = config.max_batch_lines;
  added.stored = stored.get();
  added.library = library.get();
  return &added;
}

api::ApiContext Server::Impl::context_of(Engine& engine, std::string name) {
  return {.engine = engine,
          .limits = config.limits,
          .kv = config.kv,
          .metrics = metrics,
          .refusals = refusals,
          .rate_limiter = rate_limiter,
          .memory = memory,
          .ids = ids,
          .model_name = std::move(name),
          .created_s = static_cast<std::int64_t>(std::time(nullptr)),
          .fingerprint = api::system_fingerprint(engine.model_info()),
          .version = config.version,
          .has_vllm_metrics = config.metrics_alias == "vllm",
          .memory_budget_bytes = config.memory_bytes,
          .tracer = files.tracer.get(),
          .logs = counted_logs(config, files.access_log.get()),
          .draining = draining,
          .num_slots = config.num_slots,
          .allows_pull = config.allows_pull};
}

void Server::Impl::drain_engines(std::int64_t timeout_ms) {
  models == nullptr ? first.drain(timeout_ms) : models->drain(timeout_ms);
}

void Server::Impl::keep_things(std::unique_ptr<stored::ObjectStore> store) {
  stored = std::make_unique<api::StoredThings>(contexts.front(), std::move(store));
  for (api::ApiContext& context : contexts) {
    context.max_batch_lines = config.max_batch_lines;
    context.stored = stored.get();
  }
  if (auth::KeyRing* const keys = files.keys.get(); keys != nullptr) {
    stored->watch_keys([keys](const auth::Tenant& tenant) { return keys->admits_still(tenant); });
  }
  stored->batches().resume();
}

void Server::Impl::open_adapters() {
  const auto is_model = [this](const std::string& name) {
    return models != nullptr ? models->is_model(name) : name == contexts.front().model_name;
  };
  adapters = std::make_unique<api::AdapterLoader>(config.adapter_folders, first, is_model);
  contexts.front().adapters = adapters.get();
}

Status Server::Impl::open_grpc() {
  const carriers::GrpcConfig grpc_config = {.host = config.host,
                                            .port = *config.grpc_port,
                                            .tls_certificate_file = config.tls_certificate_file,
                                            .tls_key_file = config.tls_key_file,
                                            .warn = config.warn ? config.warn : warn_on_stderr};
  KVASIR_TRY(grpc, carriers::GrpcPort::open(grpc_config, io, session_context));
  return {};
}

Status Server::Impl::open_ollama() {
  ollama_listener = std::make_unique<http::Listener>(io, connections, [this](auto socket, auto slot) {
    begin_session(std::move(socket), std::move(slot), ollama_context);
  });
  Status opened = ollama_listener->open(config.host, *config.ollama_port);
  if (!opened) opened.error().message = "Ollama's API: " + opened.error().message;
  return opened;
}

void Server::Impl::begin_session(boost::asio::ip::tcp::socket socket, http::ConnectionCounter::Slot slot,
                                 const http::SessionContext& context) {
  std::shared_ptr<http::Session> session;
  {
    const MemoryReserve::Spared spared;
    session = std::make_shared<http::Session>(std::move(socket), std::move(slot),
                                              files.tls == nullptr ? nullptr : &files.tls->context(), context);
  }
  // Asio's own work must not fail: a strand that cannot go on ends the program.
  boost::asio::dispatch(session->executor(), [session] { session->start(); });
}

// As many as there is memory for. Error (kMachine): for none.
Result<std::vector<std::thread>> Server::Impl::start_io_threads() {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(config.num_io_threads));
  try {
    for (std::int32_t i = 0; i < config.num_io_threads; ++i) threads.emplace_back([this] { serve_io(); });
  } catch (const std::exception& error) {  // no memory for a thread
    if (threads.empty()) {
      return make_error(ErrorKind::kMachine, fmt::format("no thread can be started: {}", error.what()));
    }
  }
  return threads;
}

void Server::Impl::serve_io() {
  claim_arena();
  const auto work = boost::asio::make_work_guard(io);
  while (!io.stopped()) {
    try {
      io.run();
    } catch (const std::exception& error) {
      // Out of memory in one connection's handler, which ends that connection; the others go on.
      note_failure(error.what());
    }
  }
}

// In the log, unless there is no memory for that either.
void Server::Impl::note_failure(const char* what) {
  try {
    refusals.note(fmt::format("a connection failed: {}", what), observe::RefusalLog::Clock::now());
  } catch (const std::exception&) {
    // The next one may be said.
  }
}

// Until the engine is done or somebody asks a second time; then the rest is cancelled.
void Server::Impl::drain() {
  if (library != nullptr) library->close();
  if (adapters != nullptr) adapters->close();
  std::thread engine_drain;
  try {
    engine_drain = std::thread([this] {
      drain_engines(config.drain_ms);
      stop_signal.raise();
    });
  } catch (const std::exception&) {  // no memory for a thread: nobody hears a second signal
    return drain_engines(config.drain_ms);
  }
  stop_signal.wait();
  if (num_stops > 1) drain_engines(0);
  engine_drain.join();
}

void Server::Impl::flush() {
  const auto began = std::chrono::steady_clock::now();
  while (metrics.num_answering > 0) {
    const auto time = num_stops > 1 ? kHurriedFlushTime : kFlushTime;
    if (std::chrono::steady_clock::now() - began > time) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace kvasir::server
