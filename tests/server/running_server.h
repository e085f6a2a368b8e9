// A server on a free loopback port, with a fake engine behind it, for as long as a test lasts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fake_engine.h"
#include "server/server.h"

namespace kvasir::server {

class RunningServer {
 public:
  explicit RunningServer(FakeEngine::Options engine_options = {}, ServerConfig config = {})
      : engine(std::move(engine_options)) {
    config.port = 0;
    config.allowed_hosts.insert(config.allowed_hosts.end(), {"t", "test", "a"});  // of the cases' requests
    if (config.served_model_name.empty()) config.served_model_name = "fake";
    server = Server::create(engine, std::move(config)).value();
    thread_ = std::thread([this] { (void)server->run(); });
  }
  ~RunningServer() {
    if (!thread_.joinable()) return;
    server->stop();
    server->stop();
    thread_.join();
  }

  std::uint16_t port() const { return server->port(); }
  // Waits until run() has returned.
  void join() { thread_.join(); }

  FakeEngine engine;
  std::unique_ptr<Server> server;

 private:
  std::thread thread_;
};

}  // namespace kvasir::server
