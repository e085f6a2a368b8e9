// Models that are fetched and deleted while the server answers: POST /api/pull and DELETE /api/delete.
#include "server/api/model_library.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "fake_engine.h"
#include "http_client.h"
#include "server/server.h"

namespace kvasir::server::model_library_test {
namespace {

using api::ModelLibrary;
using api::ServedModel;

ServedModel model_called(const std::string& name) {
  const auto load = [name](const std::atomic<bool>&) -> Result<std::unique_ptr<Engine>> {
    return std::make_unique<FakeEngine>(FakeEngine::Options{.answer = "I am " + name});
  };
  return {.name = name,
          .names = {},
          .path = name,
          .engine = std::make_shared<OnDemandEngine>(ModelInfo{.name = name}),
          .load = load};
}

// What a library was asked for, and how it answers.
struct Shelf {
  std::atomic<int> num_pulled{0};
  std::atomic<int> num_removed{0};
  std::atomic<bool> is_endless{false};
  std::atomic<bool> was_stopped{false};
};

ModelLibrary library_of(Shelf& shelf) {
  const auto pull = [&shelf](const std::string& name,
                             const ModelLibrary::OnProgress& on_progress) -> Result<ServedModel> {
    if (name == "unknown") return make_error(ErrorKind::kNotFound, "no model is called 'unknown'");
    bool goes_on = on_progress({.step = "downloading", .bytes_done = 5, .bytes_total = 10});
    if (name == "broken") return make_error(ErrorKind::kBadFile, "broken.gguf: the checksum is wrong");
    while (shelf.is_endless && goes_on) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      goes_on = on_progress({.step = "downloading", .bytes_done = 6, .bytes_total = 10});
    }
    if (!goes_on) {
      shelf.was_stopped = true;
      return make_error(ErrorKind::kCancelled, "stopped");
    }
    ++shelf.num_pulled;
    ServedModel pulled = model_called(name);
    pulled.was_pulled = true;
    return pulled;
  };
  return {.pull = pull,
          .remove = [&shelf](const std::string&) -> Status { return ++shelf.num_removed, Status(); },
          .may_remove = [](const std::string& path) { return path != "own"; }};
}

class ServerWithLibrary {
 public:
  explicit ServerWithLibrary(Shelf& shelf, bool any_name = false) {
    std::vector<ServedModel> models;
    for (const char* const name : {"first", "own"}) models.push_back(model_called(name));
    ServerConfig config{.port = 0, .allows_pull = true, .allowed_hosts = {"test"}};
    config.library = library_of(shelf);
    server = Server::create(std::move(models), {.max_loaded = 1, .any_name = any_name}, std::move(config))
                 .value();
    thread_ = std::thread([this] { (void)server->run(); });
  }
  ~ServerWithLibrary() {
    server->stop();
    server->stop();
    thread_.join();
  }
  ClientResponse post(const std::string& path, const std::string& body) const {
    return HttpClient(server->port()).request("POST", path, body);
  }
  ClientResponse pull(const std::string& name) const {
    return post("/api/pull", R"({"model":")" + name + "\"}");
  }
  ClientResponse remove(const std::string& name) const {
    return HttpClient(server->port()).request("DELETE", "/api/delete", R"({"model":")" + name + "\"}");
  }
  ClientResponse generate(const std::string& name) const {
    return post("/api/generate", R"({"model":")" + name + R"(","prompt":"who?","stream":false})");
  }
  std::string names() const { return HttpClient(server->port()).request("GET", "/api/tags").body; }

  std::unique_ptr<Server> server;

 private:
  std::thread thread_;
};

TEST(ModelLibrary, APulledModelIsServedAtOnce) {
  Shelf shelf;
  ServerWithLibrary served(shelf);
  EXPECT_EQ(served.generate("new").status, 404);
  const ClientResponse pulled = served.pull("new");
  EXPECT_EQ(pulled.status, 200);
  EXPECT_EQ(pulled.body,
            "{\"status\":\"downloading new\",\"digest\":\"new\",\"total\":10,\"completed\":5}\n"
            "{\"status\":\"success\"}\n");
  EXPECT_NE(served.generate("new").body.find("I am new"), std::string::npos);
  EXPECT_NE(served.generate("first").body.find("I am first"), std::string::npos);
  EXPECT_NE(served.names().find("\"new:latest\""), std::string::npos) << served.names();
  EXPECT_EQ(served.post("/api/pull", R"({"model":"new","stream":false})").body, R"({"status":"success"})");
  EXPECT_EQ(shelf.num_pulled, 1) << "the second time it was there";
}

TEST(ModelLibrary, EveryNameIsPulledWhereAnyNameIsAnswered) {
  Shelf shelf;
  ServerWithLibrary served(shelf, /*any_name=*/true);
  EXPECT_NE(served.generate("new").body.find("I am first"), std::string::npos);
  EXPECT_EQ(served.pull("new").status, 200);
  EXPECT_EQ(served.pull("new").status, 200);
  EXPECT_EQ(shelf.num_pulled, 1);
  EXPECT_NE(served.generate("new").body.find("I am new"), std::string::npos);
}

TEST(ModelLibrary, AnErrorIsAnHttpErrorBeforeTheFirstStepAndALineBehindIt) {
  Shelf shelf;
  ServerWithLibrary served(shelf);
  EXPECT_EQ(served.pull("unknown").status, 404);
  const ClientResponse broken = served.pull("broken");
  EXPECT_EQ(broken.status, 200);
  EXPECT_TRUE(broken.body.ends_with("{\"error\":\"broken.gguf: the checksum is wrong\"}\n")) << broken.body;
  const ClientResponse whole = served.post("/api/pull", R"({"model":"broken","stream":false})");
  EXPECT_EQ(whole.status, 500);
  EXPECT_NE(whole.body.find("checksum"), std::string::npos) << whole.body;
}

TEST(ModelLibrary, AClientThatGoesStopsItsPull) {
  Shelf shelf;
  shelf.is_endless = true;
  ServerWithLibrary served(shelf);
  {
    HttpClient client(served.server->port());
    client.send(http_request("POST", "/api/pull", R"({"model":"new"})"));
    client.receive_until("downloading");
  }
  EXPECT_TRUE(eventually([&] { return shelf.was_stopped.load(); }));
  shelf.is_endless = false;
  EXPECT_EQ(served.pull("other").status, 200) << "the next one is fetched";
}

TEST(ModelLibrary, TheServerEndsWhileAModelIsPulled) {
  Shelf shelf;
  shelf.is_endless = true;
  std::future<ClientResponse> pulling, waiting;
  {
    ServerWithLibrary served(shelf);
    const auto ask = [port = served.server->port()](const std::string& name) {
      return HttpClient(port).request("POST", "/api/pull", R"({"stream":false,"model":")" + name + "\"}");
    };
    pulling = std::async(std::launch::async, ask, "new");
    waiting = std::async(std::launch::async, ask, "other");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(shelf.was_stopped);
  EXPECT_EQ(pulling.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(ModelLibrary, ADeletedModelIsFoundNoMoreAndMayComeAgain) {
  Shelf shelf;
  ServerWithLibrary served(shelf);
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(served.pull("new").status, 200);
    ASSERT_EQ(served.generate("new").status, 200);
    EXPECT_EQ(served.remove("new").status, 200);
    EXPECT_EQ(shelf.num_removed, round);
    EXPECT_EQ(served.generate("new").status, 404);
    EXPECT_EQ(served.names().find("\"new:latest\""), std::string::npos) << served.names();
    EXPECT_EQ(served.remove("new").status, 404);
  }
  EXPECT_NE(served.generate("first").body.find("I am first"), std::string::npos);
}

TEST(ModelLibrary, TheFirstModelAndTheOperatorsFilesStay) {
  Shelf shelf;
  ServerWithLibrary served(shelf);
  EXPECT_EQ(served.remove("first").status, 409);
  EXPECT_EQ(served.remove("own").status, 409);
  EXPECT_EQ(served.remove("unknown").status, 404);
  EXPECT_EQ(shelf.num_removed, 0);
}

}  // namespace
}  // namespace kvasir::server::model_library_test
