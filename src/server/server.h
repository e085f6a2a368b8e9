// The HTTP server: OpenAI's API, health and metrics for one engine, or for several models.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "server/api/model_library.h"
#include "server/api/served_models.h"
#include "server/limits.h"
#include "server/observe/dropped_lines.h"
#include "server/observe/tracing/tracing_config.h"

namespace kvasir::server {

struct ServerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;               // 0: any free one
  std::optional<std::uint16_t> grpc_port;  // likewise; none: no gRPC
  std::optional<std::uint16_t> ollama_port;  // a second port, as Ollama has it; likewise
  std::int32_t num_slots = 1;                // choices that the engine computes at once, at most
  bool allows_pull = false;                  // whoever may ask may also fetch and delete models
  std::string served_model_name;           // empty: the model's own name
  std::vector<std::string> cors_origins;   // besides the usual ones (http/origin_pattern.h)
  std::string version;                     // of the program, as /version says it
  std::string base_path;                   // "/llm": paths may begin with it; empty: none
  std::vector<std::string> allowed_hosts;  // besides loopback names, of requests to a loopback address
  std::string tls_certificate_file;        // PEM; empty: no TLS
  std::string tls_key_file;
  std::string api_keys_file;                      // whose keys requests must bring; empty: none need to
  std::string access_log_file;                    // a line of JSON for each request; "-": stderr, empty: none
  std::optional<observe::TracingConfig> tracing;  // nothing: nobody is told of requests
  std::vector<observe::DroppedLines> logs;        // the program's own, for the metrics
  std::string metrics_alias;                      // "vllm": its metric names too; empty: Kvasir's own
  std::string state_dir;                          // of stored responses and files; empty: they are in memory
  std::int64_t state_bytes = std::int64_t{1} << 30;  // that they may have there
  std::int32_t max_batch_lines = 8;  // of /v1/batches, in the engine at once
  std::int64_t stored_memory_bytes = 16 << 20;       // that they may have in memory
  std::int64_t drain_ms = 30'000;                 // how long stop() lets running requests finish
  std::int32_t num_io_threads = 2;
  std::int64_t memory_bytes = 0;          // the whole process's budget, to show; 0: unknown
  std::int64_t request_memory_bytes = 0;  // for connections, bodies and answers together; 0: any
  Limits limits;
  KvParams kv;  // of requests that do not say
  api::ModelLibrary library;  // of several models; empty: requests neither fetch nor delete any
  std::vector<std::string> adapter_folders;  // that requests may load adapters from, of the first model; empty: they do not
  // Takes one line that an operator should read; empty: stderr.
  std::function<void(std::string_view line)> warn;
  // Takes one line for each request that a person would look for; empty: nobody reads it.
  std::function<void(std::string_view line)> log_request;
};

// Thread safety: stop() may be called from any thread and from a signal handler, the ports and
// ping() from any thread, run() once.
class Server {
 public:
  // Finds before a model is loaded what create() would refuse: files, names, patterns, ports. The access log's file
  // and the folder of stored objects are made. Errors as of create(), each with its flag.
  static Status check(const ServerConfig& config);

  // Binds the port, so that a client may connect as soon as this returns; answers begin with run(). The
  // engine outlives the server. Warns when the address is reachable from other machines. Errors: kUsage
  // (host, port, names), kMachine (the port is in use or not permitted).
  static Result<std::unique_ptr<Server>> create(Engine& engine, ServerConfig config);
  // Serves models that may leave memory and come back. The first answers requests that name none.
  static Result<std::unique_ptr<Server>> create(std::vector<api::ServedModel> models,
                                                api::ServedModels::Config models_config, ServerConfig config);

  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop() and the drain after it. Errors: kMachine.
  Status run();

  // First call: not ready any more, no new generations, running ones may finish within drain_ms; then run()
  // returns. A second call cancels what still runs, and run() returns at once.
  void stop();

  // A thread that answers connections calls `pong` soon. It never does once run() is about to return.
  void ping(std::function<void()> pong);

  std::uint16_t port() const;
  std::optional<std::uint16_t> grpc_port() const;
  std::optional<std::uint16_t> ollama_port() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  static Result<std::unique_ptr<Server>> open(Engine& first, std::unique_ptr<api::ServedModels> models,
                                              ServerConfig config);

  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir::server
