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
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "backend/registry.h"
#include "base/env.h"
#include "base/line_writer.h"
#include "base/logger.h"
#include "base/memory_reserve.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/blocked_signals.h"
#include "cli/build_info.h"
#include "cli/draft_options.h"
#include "cli/engine_options.h"
#include "cli/fetched_model.h"
#include "cli/learn_options.h"
#include "cli/limit_options.h"
#include "cli/lost_device.h"
#include "cli/model_library.h"
#include "cli/model_memory.h"
#include "cli/model_session.h"
#include "cli/model_set.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/service_manager.h"
#include "cli/server_announcement.h"
#include "cli/server_memory.h"
#include "cli/shadow_options.h"
#include "cli/standard_output.h"
#include "cli/systemd_watchdog.h"
#include "cli/verb.h"
#include "engine/kv_params.h"
#include "engine/step_turn.h"
#include "server/api_reference.h"
#include "server/observe/tracing/tracing_config.h"
#include "server/server.h"

namespace kvasir::cli {
namespace {

constexpr std::chrono::milliseconds kServeSignalInterval{100};
constexpr std::chrono::milliseconds kLastGrace{1500};  // after a second signal
constexpr std::chrono::seconds kCancelGrace{15};       // a step of a large model may take that long

struct ServeOptions {
  ModelSetOptions models;
  server::ServerConfig server;
  std::int64_t drain_seconds = 30;
  ServerMemoryOptions memory;
  LimitOptions limits;
  server::observe::TracingFlags tracing;
  EngineOptions engine;
  ShadowOptions shadows;
  LearnOptions learning;
};

Logger make_logger(const GlobalOptions& globals, LineWriter& writer) {
  return Logger({.level = globals.quiet     ? LogLevel::kError
                          : globals.verbose ? LogLevel::kDebug
                                            : LogLevel::kInfo,
                 .format = globals.json ? LogFormat::kJson : LogFormat::kText,
                 .writer = &writer});
}

// An adapter's name leads to its model, and to nothing else.
Status check_name(const std::string& adapter, const ModelPlace& place) {
  if (adapter == place.name || std::ranges::find(place.names, adapter) != place.names.end()) {
    return make_error(ErrorKind::kUsage, fmt::format("--lora: {} is a name of the model (NAME=PATH gives another one)",
                                                     printable_line(adapter)),
                      "lora");
  }
  return {};
}

// The first signal drains, the second ends the process, finished or not; so does time, when the drain takes
// kCancelGrace longer than it may. A device that is lost ends it with kExitMachine.
Result<int> serve_until_signal(server::Server& server, SystemdWatchdog watchdog, ServiceManager& manager,
                               std::chrono::seconds drain, BlockedSignals& signals, MemoryReserve& reserve,
                               const LostDevice& lost, Logger& logger) {
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
    if (const std::string reason = lost.reason(); !reason.empty()) {
      logger.error("{}", reason);
      server.stop();
      manager.stopping();
      finished.wait_for(kLastGrace);  // for streams to say so
      std::_Exit(kExitMachine);
    }
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

Result<std::optional<server::observe::TracingConfig>> tracing_config(
    const server::observe::TracingFlags& flags, Logger& logger) {
  const auto warn = [&logger](std::string_view line) { logger.warning("{}", line); };
  KVASIR_TRY(auto config, server::observe::make_tracing_config(flags, env_string, warn));
  if (config) config->version = build_info().version;
  return config;
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

// Whether a request may come that fetches a model, which may need the memory of another.
bool may_pull(const server::ServerConfig& config) { return config.allows_pull || !config.api_keys_file.empty(); }

// The first model loaded, unless all were found in a folder, and all of them as the server takes them.
struct OpenedModels {
  ModelSession first;
  std::vector<server::api::ServedModel> served;
};

Result<OpenedModels> open_models(const ServeOptions& options, const std::vector<ModelPlace>& places,
                                 const GlobalOptions& globals, BlockedSignals& signals, Logger& logger) {
  OpenedModels models;
  const ModelPlace& first = places.front();
  if (!first.is_optional) {
    KVASIR_TRY(models.first, open_session(first.model, first.config, globals, &signals, options.engine.kv_log,
                                          options.server.warn));
  }
  for (const ModelPlace& place : places) {
    const bool is_first = &place == &first;
    models.served.push_back(
        served_on_demand(place, options.shadows, logger, is_first ? std::move(models.first.weights_watch) : nullptr));
  }
  if (models.first.engine != nullptr) {
    EngineConfig config = first.config;
    config.kv_journal = models.first.kv_log.get();
    KVASIR_TRY(auto engine, with_shadows(std::move(models.first.engine), options.shadows, config, logger));
    models.served.front().engine->attach(std::move(engine));
  }
  const bool may_leave = places.size() > 1 || options.models.keep_alive_seconds > 0 || may_pull(options.server);
  if (!may_leave && !first.is_optional) models.served.front().load = nullptr;
  return models;
}

Result<int> serve(ServeOptions options, const GlobalOptions& globals) {
  give_memory_back_at_once();
  std::signal(SIGPIPE, SIG_IGN);  // whoever read the log may go; the server stays
  KVASIR_TRY(EngineConfig config, make_engine_config(options.engine, globals));
  if (backend::is_gpu(config.device) && is_compressed(options.server.kv)) {
    return make_error(ErrorKind::kUnmet, fmt::format("kv_policy: {} keeps keys and values as they are computed, so none runs", config.device),
                      "kv_policy");
  }
  const auto lost = std::make_shared<LostDevice>();
  config.on_device_lost = [lost](const std::string& reason) { lost->note(reason); };
  KVASIR_TRY(std::vector<ModelPlace> places, list_models(options.models));
  const bool has_adapters = !config.adapters.empty() || !options.server.adapter_folders.empty();
  if (places.size() > 1 && has_adapters) {
    const std::string_view flag = config.adapters.empty() ? "--lora-dir" : "--lora";
    return make_error(ErrorKind::kUsage, fmt::format("{}: it goes with one model, {} are served", flag, places.size()), "lora");
  }
  for (const AdapterConfig& adapter : config.adapters) KVASIR_CHECKED(check_name(adapter.name, places.front()));
  for (const auto& [flag, path] : {std::pair("draft-heads", &config.draft_heads_path), std::pair("draft-model", &config.draft_model_path),
                                   std::pair("kv-forecast", &config.kv_forecast_path)}) {
    if (places.size() == 1 || path->empty()) continue;
    return make_error(ErrorKind::kUsage, fmt::format("--{}: it goes with one model, {} are served", flag, places.size()), flag);
  }
  KVASIR_CHECKED(check_learning(options.learning, places.size()));
  KVASIR_CHECKED(set_shadows(options.shadows, options.server.kv, places.size()));
  if (!options.shadows.against.empty()) config.step_turn = std::make_shared<StepTurn>();
  KVASIR_TRY(options.server.limits, chosen_limits(options.limits));
  KVASIR_CHECKED(set_memory_aside(options.memory, loaded_file_bytes(places, options.models.max_loaded), options.server,
                                  config));
  KVASIR_TRY(const std::int64_t scorer_bytes, bytes_of_scorer(options.shadows));
  config.reserved_bytes += scorer_bytes;
  options.server.num_slots = config.max_num_seqs;
  options.server.max_batch_lines = std::max(1, config.max_num_seqs / 2);  // others find a seat
  const std::unique_ptr<LineWriter> log_writer = LineWriter::of_descriptor(STDERR_FILENO, {});
  Logger logger = make_logger(globals, *log_writer);
  options.server.warn = [&logger](std::string_view line) { logger.warning("{}", line); };
  if (logger.enabled(LogLevel::kInfo)) {
    options.server.log_request = [&logger](std::string_view line) { logger.info("{}", line); };
  }
  KVASIR_TRY(options.server.tracing, tracing_config(options.tracing, logger));
  fit_connections(options.server, logger);
  raise_descriptor_limit(options.server.limits, logger);
  KVASIR_CHECKED(server::Server::check(options.server));
  for (const ModelPlace& place : places) KVASIR_CHECKED(fetch_if_missing(place.model, globals));
  KVASIR_TRY(const auto learner, begin_learning(options.learning, places.front().model, config, logger));
  KVASIR_TRY(ModelMemory memory, ModelMemory::share(places, config, options.models.max_loaded, logger));
  BlockedSignals signals({SIGINT, SIGTERM, SIGHUP});
  KVASIR_TRY(OpenedModels models, open_models(options, places, globals, signals, logger));
  warn_of_unused_forecasts(options.learning, config, options.server.kv, options.shadows.canary, logger);
  const std::shared_ptr<OnDemandEngine> first = models.served.front().engine;
  options.server.served_model_name = places.front().name;
  options.server.drain_ms = 1000 * options.drain_seconds;
  options.server.version = build_info().version;
  options.server.logs = {{.log = "server", .count = [&log_writer] { return log_writer->num_dropped(); }}};
  if (journal::KvLog* const kv_log = models.first.kv_log.get(); kv_log != nullptr) {
    options.server.logs.push_back({.log = "kv", .count = [kv_log] { return kv_log->num_dropped(); }});
  }
  const server::api::ServedModels::Config models_config = {
      .max_loaded = memory.num_at_once(),
      .keep_alive = std::chrono::seconds(options.models.keep_alive_seconds),
      .any_name = options.models.takes_any_name};
  if (may_pull(options.server)) options.server.library = make_model_library(std::move(memory), options.shadows, logger);
  MemoryReserve reserve;
  KVASIR_TRY(auto server, server::Server::create(std::move(models.served), models_config, options.server));
  if (!reserve.is_full()) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("ulimit -v leaves too little memory: {} are set aside for the server's own threads",
                                  format_bytes(MemoryReserve::kPieceBytes * MemoryReserve::kNumPieces)));
  }
  announce({places, first->is_loaded() ? first.get() : nullptr}, *server, options.server, globals.json);
  ServiceManager manager;
  manager.ready(printable_line(options.server.served_model_name) + " at " +
                listening_url(options.server, server->port()));
  const Result<int> exit_code =
      serve_until_signal(*server, SystemdWatchdog(*first, *server, manager), manager,
                         std::chrono::seconds(options.drain_seconds), signals, reserve, *lost, logger);
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

namespace {

void add_model_set_options(CLI::App& verb, ModelSetOptions& options) {
  verb.add_option("MODEL,-m,--model", options.models,
                  "Catalogue names, .gguf files or folders; the first answers requests that name none");
  verb.add_option("--model-dir", options.model_dir,
                  "Folder whose .gguf files and model folders are served too, loaded when they are asked");
  verb.add_option("--served-model-name", options.served_names,
                  "Model name in the API, of the first model or MODEL=NAME; again for further names (default: as MODEL)")
      ->delimiter(',');
  verb.add_flag("--any-model-name", options.takes_any_name,
                "Requests for a model that is not here are the first one's");
  verb.add_option("--max-loaded-models", options.max_loaded,
                  "Models in memory at a time; the least recently used leaves (0: as many as --memory holds)")
      ->transform(whole_number(0, 1024))
      ->capture_default_str();
  verb.add_option("--keep-alive", options.keep_alive_seconds,
                  "Seconds after which an unused model leaves memory (0: when another needs its room)")
      ->transform(whole_number(0, 31'536'000))
      ->capture_default_str();
}

}  // namespace

void add_serve(CLI::App& app, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  choose_serving_defaults(options->engine);
  CLI::App* verb = app.add_subcommand("serve",
                                      "Serve models over HTTP with the APIs of OpenAI, Anthropic, Ollama and llama-server");
  add_model_set_options(*verb, options->models);
  add_kv_policy_options(*verb, options->server.kv);
  add_kv_forecast_option(*verb, options->engine);
  add_kv_log_option(*verb, options->engine.kv_log);
  add_shadow_options(*verb, options->shadows);
  add_learn_options(*verb, options->learning);
  verb->add_option("--host", options->server.host, "Address to listen on")->capture_default_str();
  verb->add_option("--port", options->server.port, "Port to listen on (0: any free one)")
      ->transform(whole_number(0, 65535))
      ->capture_default_str();
  verb->add_option("--grpc-port", options->server.grpc_port,
                   "gRPC port (0: any free one; off without it): proto/kvasir/v1/kvasir.proto")
      ->transform(whole_number(0, 65535));
  verb->add_option("--ollama-port", options->server.ollama_port,
                   "Second port that answers as Ollama's does, which is 11434 (0: any free one; off without it)")
      ->transform(whole_number(0, 65535));
  verb->add_flag("--allow-pull", options->server.allows_pull,
                 "Let requests to /api/pull and /api/delete through without an operator's key");
  add_chat_template_option(*verb, options->engine);
  verb->add_option("--api-keys", options->server.api_keys_file,
                   "File of `kvasir keys add`: requests need one of its API keys");
  verb->add_option("--access-log", options->server.access_log_file,
                   "Access log: a JSON line for each request with its cost, without its text (-: stderr)");
  verb->add_option("--state-dir", options->server.state_dir,
                   "Folder for stored responses, files and batches (default: in memory, lost at the end)");
  verb->add_option("--state-bytes", options->memory.state_bytes,
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
  const auto without_blanks = [](std::string text) { return CLI::detail::trim(text); };  // "a, b"
  verb->add_option("--allowed-host", options->server.allowed_hosts,
                   "Host header values that are accepted on loopback besides localhost, e.g. a proxy's name")
      ->delimiter(',')
      ->transform(without_blanks);
  verb->add_option(
          "--cors-origin", options->server.cors_origins,
          "CORS origins besides localhost, app://, tauri:// and vscode-webview:// (none: without these): "
          "like https://chat.example, https://*.example or http://box:*, or * for all")
      ->delimiter(',')
      ->transform(without_blanks);
  verb->add_option("--base-path", options->server.base_path,
                   "Path prefix under which the API answers too, e.g. /llm behind a reverse proxy");
  add_limit_options(*verb, options->limits);
  verb->add_option(
      "--request-memory", options->memory.request_memory,
      "Memory that connections, bodies and answers may take together, out of --memory (default: an eighth)");
  verb->add_option("--guide-memory", options->memory.guide_memory,
                   "Memory that compiled guides may take, out of --memory (default: 64 MiB, of small budgets a sixteenth)");
  verb->add_option("--adapter-memory", options->memory.adapter_memory,
                   "Memory that adapters may take, out of --memory (default: what those of --lora take; with --lora-dir "
                   "256 MiB, of small budgets an eighth)");
  verb->add_option("--lora-dir", options->server.adapter_folders,
                   "A folder of adapters that requests to /v1/load_lora_adapter may load; again for more")
      ->check(CLI::ExistingDirectory)
      ->take_all()
      ->expected(1);
  verb->add_option("--drain-timeout", options->drain_seconds,
                   "Graceful shutdown: seconds for running requests to finish")
      ->transform(whole_number(0, 86400))
      ->capture_default_str();
  add_context_option(*verb, options->engine, "--max-model-len,--ctx,-c,--ctx-size");
  add_kv_type_option(*verb, options->engine);
  add_weight_options(*verb, options->engine);
  add_speculate_option(*verb, options->engine, "auto");
  add_adapter_options(*verb, options->engine);
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
