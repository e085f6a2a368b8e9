// kvasir serve: the engine behind OpenAI's API, until a signal.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "base/env.h"
#include "base/json_writer.h"
#include "base/line_writer.h"
#include "base/logger.h"
#include "base/machine.h"
#include "base/memory_reserve.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/blocked_signals.h"
#include "cli/build_info.h"
#include "cli/engine_options.h"
#include "cli/fetched_model.h"
#include "cli/limit_options.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/service_manager.h"
#include "cli/server_reserve.h"
#include "cli/standard_output.h"
#include "cli/systemd_watchdog.h"
#include "cli/verb.h"
#include "engine/memory_plan.h"
#include "io/model_fingerprint.h"
#include "server/api_reference.h"
#include "server/observe/tracing/tracing_config.h"
#include "server/request_memory.h"
#include "server/server.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

constexpr std::chrono::milliseconds kServeSignalInterval{100};
constexpr std::chrono::milliseconds kLastGrace{1500};  // after a second signal
constexpr std::chrono::seconds kCancelGrace{15};       // a step of a large model may take that long

struct ServeOptions {
  std::string model;
  server::ServerConfig server;
  std::int64_t drain_seconds = 30;
  std::string request_memory;  // a size; empty: a part of the budget
  std::string guide_memory;    // likewise
  std::string state_bytes;     // a size; empty: the default
  LimitOptions limits;
  server::observe::TracingFlags tracing;
  EngineOptions engine;
};

Logger make_logger(const GlobalOptions& globals, LineWriter& writer) {
  return Logger({.level = globals.quiet     ? LogLevel::kError
                          : globals.verbose ? LogLevel::kDebug
                                            : LogLevel::kInfo,
                 .format = globals.json ? LogFormat::kJson : LogFormat::kText,
                 .writer = &writer});
}

// The model's name for clients: the name from the command line, or a file's name without folder and ending.
std::string default_served_name(const std::string& model) {
  return model.ends_with(".gguf") ? std::filesystem::path(model).stem().string() : model;
}

std::string listening_url(const server::ServerConfig& config, std::uint16_t port) {
  const std::string& host = config.host;
  const bool is_any = host == "0.0.0.0" || host == "::";
  const std::string name = is_any ? "localhost" : host.find(':') == host.npos ? host : "[" + host + "]";
  return fmt::format("{}://{}:{}", config.tls_certificate_file.empty() ? "http" : "https", name, port);
}

std::string curl_line(const Engine& engine, const std::string& url, const server::ServerConfig& config) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("model", config.served_model_name);
  const bool can_chat = engine.chat_template() != nullptr, is_encoder = engine.model_info().is_encoder;
  if (is_encoder) {
    json.member("input", "Once upon a time");
  } else if (can_chat) {
    json.key("messages")
        .begin_array()
        .begin_object()
        .member("role", "user")
        .member("content", "Hello!")
        .end_object()
        .end_array();
  } else {
    json.member("prompt", "Once upon a time").member("max_tokens", 32);
  }
  json.end_object();
  const std::string key = config.api_keys_file.empty() ? "" : " -H \"Authorization: Bearer $KEY\"";
  return fmt::format("curl {}/v1/{} -H 'Content-Type: application/json'{} -d '{}'", url,
                     is_encoder ? "embeddings"
                     : can_chat ? "chat/completions"
                                : "completions",
                     key, body);
}

std::string describe_memory(const std::string& model, const Engine& engine) {
  const ModelInfo& info = engine.model_info();
  return fmt::format("{} ({}, {}): {} of weights, {} of KV, up to {} tokens a request", printable_line(model),
                     info.architecture, info.quantization, format_bytes(info.weight_bytes),
                     format_bytes(engine.stats().kv_bytes_total), info.max_model_len_tokens);
}

void announce(const std::string& model, const Engine& engine, const server::Server& server,
              const server::ServerConfig& config, bool as_json) {
  const std::string url = listening_url(config, server.port());
  const std::string memory = describe_memory(model, engine), curl = curl_line(engine, url, config);
  const std::optional<std::uint16_t> grpc_port = server.grpc_port();
  if (!as_json) {
    print(fmt::format("{}\n{} (Ctrl-C stops)\n", memory, url));
    if (grpc_port) print(fmt::format("gRPC on port {}\n", *grpc_port));
    return print(curl + "\n");
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("model", config.served_model_name).member("memory", memory).member("url", url);
  if (grpc_port) json.member("grpc_port", *grpc_port);
  json.member("example", curl).end_object();
  print(out + "\n");
}

// The first signal drains, the second ends the process, finished or not; so does time, when the drain takes
// kCancelGrace longer than it may.
Result<int> serve_until_signal(server::Server& server, SystemdWatchdog watchdog, ServiceManager& manager,
                               std::chrono::seconds drain, BlockedSignals& signals, MemoryReserve& reserve,
                               Logger& logger) {
  using Clock = std::chrono::steady_clock;
  std::future<Status> finished = std::async(std::launch::async, [&server] { return server.run(); });
  int num_signals = 0;
  auto deadline = Clock::time_point::max();
  while (finished.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (Clock::now() > deadline) {
      logger.error("the running requests did not end within {} s of being cancelled", kCancelGrace.count());
      std::_Exit(kExitMachine);
    }
    watchdog.beat();
    reserve.refill();
    const std::optional<int> signal = signals.take(kServeSignalInterval);
    // A terminal that closes hangs up more than once.
    if (!signal || (*signal == SIGHUP && num_signals > 0)) continue;
    server.stop();
    manager.stopping();
    deadline = Clock::now() + drain + kCancelGrace;
    if (++num_signals == 1) {
      logger.info("stopping: running requests may finish; a second signal ends them");
      continue;
    }
    finished.wait_for(kLastGrace);
    std::_Exit(kExitInterrupted);
  }
  KVASIR_CHECKED(finished.get());
  return kExitDone;
}

// Large bodies and answers come and go: without this the allocator keeps what they leave.
void give_memory_back_at_once() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

// A thread of gRPC's that waits for a certificate's file to be opened, a pipe by now, does not keep the
// process.
void close_server(std::unique_ptr<server::Server> server, Logger& logger) {
  std::future<void> closed;
  try {
    closed = std::async(std::launch::async, [&server] { server.reset(); });
  } catch (const std::exception&) {  // no memory for a thread
    return server.reset();
  }
  if (closed.wait_for(kCancelGrace) == std::future_status::ready) return;
  logger.error("the server did not close within {} s", kCancelGrace.count());
  std::_Exit(kExitMachine);
}

// An eighth of the memory budget unless a flag says how much.
Result<std::int64_t> request_memory_bytes(const std::string& size, std::int64_t budget_bytes,
                                          const server::ServerConfig& config) {
  const server::Limits& limits = config.limits;
  const std::int64_t least_bytes = least_request_memory_bytes(limits, config.grpc_port.has_value());
  if (size.empty()) return std::max(least_bytes, budget_bytes / 8);
  const auto bytes = parse_bytes(size);
  if (bytes && *bytes >= least_bytes) return *bytes;
  return make_error(
      ErrorKind::kUsage,
      bytes
          ? fmt::format("--request-memory must be at least {} with bodies of up to {}, got {}",
                        format_bytes(least_bytes), format_bytes(limits.body_bytes.max), format_bytes(*bytes))
          : "--request-memory: " + bytes.error().message,
      "request_memory");
}

// 64 MiB, or a sixteenth of a small budget, unless a flag says how much.
Result<std::int64_t> guide_memory_bytes(const std::string& size, std::int64_t budget_bytes) {
  constexpr std::int64_t kLeast = 1 << 20;
  if (size.empty()) return std::max(kLeast, std::min(EngineConfig{}.guide_memory_bytes, budget_bytes / 16));
  const auto bytes = parse_bytes(size);
  if (bytes && *bytes >= kLeast) return *bytes;
  return make_error(ErrorKind::kUsage,
                    bytes ? fmt::format("--guide-memory must be at least {}, got {}", format_bytes(kLeast),
                                        format_bytes(*bytes))
                          : "--guide-memory: " + bytes.error().message,
                    "guide-memory");
}

// A model that is yet to be fetched is one of the catalogue's, which are small, or counts as such.
std::int64_t default_memory_for(const std::string& model) {
  const auto path = store::resolve_model(model);
  return default_memory_bytes(path ? io::weight_file_bytes(*path) : 0, available_memory_bytes());
}

Result<std::optional<server::observe::TracingConfig>> tracing_config(
    const server::observe::TracingFlags& flags, Logger& logger) {
  const auto warn = [&logger](std::string_view line) { logger.warning("{}", line); };
  KVASIR_TRY(auto config, server::observe::make_tracing_config(flags, env_string, warn));
  if (config) config->version = build_info().version;
  return config;
}

// So many connections that all of them leave a body its room.
void fit_connections(server::ServerConfig& config, Logger& logger) {
  server::Limits& limits = config.limits;
  const std::int64_t all_bytes = config.request_memory_bytes;
  const std::int64_t grpc_bytes = config.grpc_port ? server::grpc_bytes(all_bytes) : 0;
  const std::int64_t room_bytes = all_bytes - grpc_bytes - largest_body_bytes(limits);
  const std::int64_t most = room_bytes /
                            server::connection_bytes(limits, !config.tls_certificate_file.empty());
  if (most >= limits.connections.max) return;
  logger.info("{} of request memory are enough for {} connections at a time beside a large body",
              format_bytes(all_bytes), most);
  limits.connections.max = most;
}

Result<std::int64_t> state_bytes_of(const std::string& size) {
  constexpr std::int64_t kLeast = 16 << 20;
  const auto bytes = parse_bytes(size);
  if (bytes && *bytes >= kLeast) return *bytes;
  return make_error(ErrorKind::kUsage,
                    bytes ? fmt::format("--state-bytes must be at least {}, got {}", format_bytes(kLeast),
                                        format_bytes(*bytes))
                          : "--state-bytes: " + bytes.error().message,
                    "state-bytes");
}

// Many systems start programs with fewer descriptors than there may be connections.
void raise_descriptor_limit(const server::Limits& limits, Logger& logger) {
  constexpr std::int64_t kOtherDescriptors = 64;
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  const auto wanted = static_cast<rlim_t>(limits.connections.max + kOtherDescriptors);
  if (descriptors.rlim_max >= wanted) return;
  logger.warning("the system allows {} open files, too few for {} connections (ulimit -Hn)",
                 descriptors.rlim_max, limits.connections.max);
}

Result<int> serve(ServeOptions options, const GlobalOptions& globals) {
  give_memory_back_at_once();
  std::signal(SIGPIPE, SIG_IGN);  // whoever read the log may go; the server stays
  KVASIR_TRY(EngineConfig config, make_engine_config(options.engine, globals));
  if (config.memory_bytes == 0) config.memory_bytes = default_memory_for(options.model);
  KVASIR_TRY(options.server.limits, chosen_limits(options.limits));
  KVASIR_TRY(config.reserved_bytes,
             request_memory_bytes(options.request_memory, config.memory_bytes, options.server));
  if (!options.state_bytes.empty()) {
    KVASIR_TRY(options.server.state_bytes, state_bytes_of(options.state_bytes));
  }
  options.server.stored_memory_bytes = stored_memory_bytes(config.reserved_bytes);
  config.reserved_bytes += options.server.stored_memory_bytes;
  options.server.max_batch_lines = std::max(1, config.max_num_seqs / 2);  // others find a seat
  options.server.memory_bytes = config.memory_bytes;
  options.server.request_memory_bytes = config.reserved_bytes - options.server.stored_memory_bytes;
  KVASIR_TRY(config.guide_memory_bytes, guide_memory_bytes(options.guide_memory, config.memory_bytes));
  config.reserved_bytes += config.guide_memory_bytes;
  const std::unique_ptr<LineWriter> log_writer = LineWriter::of_descriptor(STDERR_FILENO, {});
  Logger logger = make_logger(globals, *log_writer);
  options.server.warn = [&logger](std::string_view line) { logger.warning("{}", line); };
  KVASIR_TRY(options.server.tracing, tracing_config(options.tracing, logger));
  fit_connections(options.server, logger);
  raise_descriptor_limit(options.server.limits, logger);
  KVASIR_CHECKED(fetch_if_missing(options.model, globals));
  BlockedSignals signals({SIGINT, SIGTERM, SIGHUP});
  KVASIR_TRY(const ModelSession session, open_session(options.model, config, globals, &signals,
                                                      options.engine.kv_log, options.server.warn));
  if (options.server.served_model_name.empty()) {
    options.server.served_model_name = default_served_name(options.model);
  }
  options.server.drain_ms = 1000 * options.drain_seconds;
  options.server.version = build_info().version;
  options.server.logs = {{.log = "server", .count = [&log_writer] { return log_writer->num_dropped(); }}};
  if (journal::KvLog* const kv_log = session.kv_log.get(); kv_log != nullptr) {
    options.server.logs.push_back({.log = "kv", .count = [kv_log] { return kv_log->num_dropped(); }});
  }
  MemoryReserve reserve;
  KVASIR_TRY(auto server, server::Server::create(*session.engine, options.server));
  if (!reserve.is_full()) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("ulimit -v leaves too little memory: {} are set aside for the server's own threads",
                                  format_bytes(MemoryReserve::kPieceBytes * MemoryReserve::kNumPieces)));
  }
  announce(options.model, *session.engine, *server, options.server, globals.json);
  logger.debug("loaded in {:.0f} ms", session.load_ms);
  ServiceManager manager;
  manager.ready(printable_line(options.server.served_model_name) + " at " +
                listening_url(options.server, server->port()));
  const Result<int> exit_code = serve_until_signal(
      *server, SystemdWatchdog(*session.engine, *server, manager), manager,
      std::chrono::seconds(options.drain_seconds), signals, reserve, logger);
  close_server(std::move(server), logger);
  return exit_code;
}

// Defaults that keep the server's guarantees, where other verbs have one user.
void choose_serving_defaults(EngineOptions& options) {
  options.max_step_ms = 75;  // short of a tenth of a second, at which a stream is seen to stall
  options.waiting_policy = "slo-value";
  options.ageing_ms = 10'000;
  options.max_queued_requests = 2048;
  options.queue_timeout_seconds = 600;
}

// An empty name, of a variable that is not set, must not mean plain HTTP.
std::string names_a_file(const std::string& path) { return path.empty() ? "must name a file" : ""; }

}  // namespace

void add_tracing_options(CLI::App& verb, server::observe::TracingFlags& flags) {
  const auto check_url = [](const std::string& text) -> std::string {
    const auto url = server::observe::parse_collector_url(text, server::observe::UrlUse::kBase);
    return url ? std::string() : url.error().message;
  };
  verb.add_option("--otlp-endpoint", flags.endpoint,
                  "Send a trace of each request to this OpenTelemetry collector, e.g. http://localhost:4318")
      ->check(CLI::Validator(check_url, ""));
  verb.add_option(
          "--otlp-sample", flags.share,
          "Share of the requests to trace, 0 to 1, of those that are part of no trace yet (default: 1)")
      ->check(CLI::Range(0.0, 1.0));
}

void add_serve(CLI::App& app, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  choose_serving_defaults(options->engine);
  CLI::App* verb = app.add_subcommand("serve",
                                      "Serve a model over HTTP with the APIs of OpenAI and Anthropic");
  verb->add_option("MODEL,-m,--model", options->model, "Catalogue name, .gguf file or folder")->required();
  add_kv_policy_options(*verb, options->server.kv);
  add_kv_disk_options(*verb, options->engine);
  add_kv_log_option(*verb, options->engine.kv_log);
  verb->add_option("--host", options->server.host, "Address to listen on")->capture_default_str();
  verb->add_option("--port", options->server.port, "Port to listen on (0: any free one)")
      ->transform(whole_number(0, 65535))
      ->capture_default_str();
  verb->add_option("--grpc-port", options->server.grpc_port,
                   "gRPC port (0: any free one; off without it): proto/kvasir/v1/kvasir.proto")
      ->transform(whole_number(0, 65535));
  verb->add_option("--served-model-name", options->server.served_model_name,
                   "Model name in the API (default: as MODEL)");
  add_chat_template_option(*verb, options->engine);
  verb->add_option("--api-keys", options->server.api_keys_file,
                   "File of `kvasir keys add`: requests need one of its API keys");
  verb->add_option("--access-log", options->server.access_log_file,
                   "Access log: a JSON line for each request with its cost, without its text (-: stderr)");
  verb->add_option("--state-dir", options->server.state_dir,
                   "Folder for stored responses, files and batches (default: in memory, lost at the end)");
  verb->add_option("--state-bytes", options->state_bytes,
                   "Most bytes of stored objects: beyond it the oldest are deleted (default: 1G)");
  add_tracing_options(*verb, options->tracing);
  verb->add_option("--metrics-alias", options->server.metrics_alias,
                   "Export the metrics under another server's names too, for its dashboards")
      ->check(one_of({"vllm"}));
  verb->add_option("--tls-cert", options->server.tls_certificate_file,
                   "PEM file with the certificate chain: turns HTTPS on")
      ->check(names_a_file);
  verb->add_option("--tls-key", options->server.tls_key_file, "PEM file with the private key")
      ->check(names_a_file);
  verb->add_option("--allowed-host", options->server.allowed_hosts,
                   "Host header values that are accepted on loopback besides localhost, e.g. a proxy's name")
      ->delimiter(',');
  verb->add_option(
          "--cors-origin", options->server.cors_origins,
          "CORS origins besides localhost, app://, tauri:// and vscode-webview:// (none: without these): "
          "like https://chat.example, https://*.example or http://box:*, or * for all")
      ->delimiter(',');
  verb->add_option("--base-path", options->server.base_path,
                   "Path prefix under which the API answers too, e.g. /llm behind a reverse proxy");
  add_limit_options(*verb, options->limits);
  verb->add_option(
      "--request-memory", options->request_memory,
      "Memory that connections, bodies and answers may take together, out of --memory (default: an eighth)");
  verb->add_option("--guide-memory", options->guide_memory,
                   "Memory that compiled guides may take, out of --memory (default: 64 MiB, of small budgets a sixteenth)");
  verb->add_option("--drain-timeout", options->drain_seconds,
                   "Graceful shutdown: seconds for running requests to finish")
      ->transform(whole_number(0, 86400))
      ->capture_default_str();
  add_context_option(*verb, options->engine, "--max-model-len,--ctx,-c,--ctx-size");
  add_kv_type_option(*verb, options->engine);
  add_weight_options(*verb, options->engine);
  add_batching_options(*verb, options->engine);
  add_queue_options(*verb, options->engine);
  const auto print_reference = [] {
    print(server::api_reference());
    throw CLI::Success();
  };
  verb->add_flag_callback("--api-reference", print_reference, "Print the API reference as Markdown")
      ->trigger_on_parse();
  on_chosen(*verb, context, [options, &context] { return serve(*options, context.options); });
}

}  // namespace kvasir::cli
