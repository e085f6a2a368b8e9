// A server on a free loopback port, with an engine of a test's behind it, for as long as a test lasts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fake_engine.h"
#include "server/server.h"

namespace kvasir::server {

// Of an engine that outlives it.
class ServedEngine {
 public:
  explicit ServedEngine(Engine& engine, ServerConfig config = {}) {
    config.port = 0;
    config.allowed_hosts.insert(config.allowed_hosts.end(), {"t", "test", "a"});  // of the cases' requests
    if (config.served_model_name.empty()) config.served_model_name = "fake";
    server = Server::create(engine, std::move(config)).value();
    thread_ = std::thread([this] { (void)server->run(); });
  }
  ~ServedEngine() {
    if (!thread_.joinable()) return;
    server->stop();
    server->stop();
    thread_.join();
  }

  std::uint16_t port() const { return server->port(); }
  // Waits until run() has returned.
  void join() { thread_.join(); }

  std::unique_ptr<Server> server;

 private:
  std::thread thread_;
};

struct FakeEngineOwner {
  FakeEngine engine;
};

class RunningServer : public FakeEngineOwner, public ServedEngine {
 public:
  explicit RunningServer(FakeEngine::Options engine_options = {}, ServerConfig config = {})
      : FakeEngineOwner{FakeEngine(std::move(engine_options))}, ServedEngine(engine, std::move(config)) {}
};

}  // namespace kvasir::server
