// Several models behind one server: which one answers, which are loaded, and what leaves when.
#include "server/api/served_models.h"

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

namespace kvasir::server::served_models_test {

using api::ModelState;
using api::ServedModel;
using api::ServedModels;

// Counts of what the loading of the models did.
struct Loads {
  std::atomic<int> num_loaded{0};
  std::atomic<int> most_loaded{0};
  std::atomic<int> num_loads{0};
  std::atomic<bool> fails{false};
};

// Counts the engines that are there.
class CountedEngine final : public Engine {
 public:
  CountedEngine(Loads& loads, FakeEngine::Options options) : loads_(loads), engine_(std::move(options)) {
    const int now = ++loads_.num_loaded;
    if (now > loads_.most_loaded) loads_.most_loaded = now;
  }
  ~CountedEngine() override { --loads_.num_loaded; }
  const ModelInfo& model_info() const override { return engine_.model_info(); }
  const text::Tokenizer* tokenizer() const override { return engine_.tokenizer(); }
  const text::ChatTemplate* chat_template() const override { return engine_.chat_template(); }
  using Engine::submit;
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override {
    return engine_.submit(std::move(submissions));
  }
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override {
    return engine_.submit_some(std::move(submissions));
  }
  std::shared_ptr<void> keep_open() override { return engine_.keep_open(); }
  void cancel(RequestId id) override { engine_.cancel(id); }
  EngineStats stats() const override { return engine_.stats(); }
  void inspect(EngineSnapshotSink sink) override { engine_.inspect(std::move(sink)); }
  void drain(std::int64_t timeout_ms) override { engine_.drain(timeout_ms); }

 private:
  Loads& loads_;
  FakeEngine engine_;
};

ServedModel model_called(const std::string& name, Loads& loads, std::chrono::milliseconds step = {}) {
  const auto load = [&loads, name, step](const std::atomic<bool>&) -> Result<std::unique_ptr<Engine>> {
    ++loads.num_loads;
    if (loads.fails) return make_error(ErrorKind::kBadFile, name + ".gguf: the file ends too early");
    return std::make_unique<CountedEngine>(loads, FakeEngine::Options{.answer = "I am " + name, .step = step});
  };
  return {.name = name,
          .names = {name + "-alias"},
          .path = "/models/" + name + ".gguf",
          .engine = std::make_shared<OnDemandEngine>(ModelInfo{.name = name}),
          .load = load};
}

class SeveralModels {
 public:
  SeveralModels(std::vector<ServedModel> models, ServedModels::Config config) {
    server = Server::create(std::move(models), config, {.port = 0, .allowed_hosts = {"test"}}).value();
    thread_ = std::thread([this] { (void)server->run(); });
  }
  ~SeveralModels() {
    server->stop();
    server->stop();
    thread_.join();
  }
  ClientResponse chat(const std::string& model) const {
    return post("/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"who?"}],"model":")" + model + "\"}");
  }
  ClientResponse get(const std::string& path) const { return HttpClient(server->port()).request("GET", path); }
  ClientResponse post(const std::string& path, const std::string& body) const {
    return HttpClient(server->port()).request("POST", path, body);
  }

  std::unique_ptr<Server> server;

 private:
  std::thread thread_;
};

std::vector<ServedModel> three(Loads& loads, std::chrono::milliseconds step = {}) {
  std::vector<ServedModel> models;
  for (const char* const name : {"a:1b", "b:1b", "c:1b"}) models.push_back(model_called(name, loads, step));
  return models;
}

TEST(ServedModels, EachRequestIsAnsweredByTheModelThatItNames) {
  Loads loads;
  SeveralModels served(three(loads), {});
  EXPECT_EQ(loads.num_loads, 0);
  EXPECT_NE(served.chat("b:1b").body.find("I am b:1b"), std::string::npos);
  EXPECT_NE(served.chat("C").body.find("I am c:1b"), std::string::npos);
  EXPECT_NE(served.chat("a:1b-alias").body.find("\"model\":\"a:1b\""), std::string::npos);
  EXPECT_NE(served.chat("").body.find("I am a:1b"), std::string::npos);
  EXPECT_EQ(loads.num_loads, 3);
  EXPECT_EQ(loads.num_loaded, 3);
}

TEST(ServedModels, AnUnknownNameIs404AndListsThoseThereAre) {
  Loads loads;
  SeveralModels served(three(loads), {});
  const ClientResponse answer = served.chat("gpt-4o");
  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.body.find(R"(only \"a:1b\", \"b:1b\", \"c:1b\")"), std::string::npos) << answer.body;
  EXPECT_EQ(loads.num_loads, 0);
}

TEST(ServedModels, AnyNameIsTheFirstModelsWhereTheOperatorSaysSo) {
  Loads loads;
  SeveralModels served(three(loads), {.any_name = true});
  EXPECT_NE(served.chat("gpt-4o").body.find("I am a:1b"), std::string::npos);
  EXPECT_NE(served.chat("b:1b").body.find("I am b:1b"), std::string::npos);
}

TEST(ServedModels, TheLeastRecentlyUsedLeavesForAnother) {
  Loads loads;
  SeveralModels served(three(loads), {.max_loaded = 2});
  served.chat("a:1b");
  served.chat("b:1b");
  served.chat("a:1b");
  EXPECT_EQ(served.chat("c:1b").status, 200);
  EXPECT_EQ(loads.most_loaded, 2);
  const std::string models = served.get("/v1/models").body;
  EXPECT_NE(models.find(R"("state":"known","names":["b:1b-alias"])"), std::string::npos) << models;
  EXPECT_EQ(loads.num_loads, 3);
}

// Two models in turn where one fits: each request waits for its model, and none fails.
TEST(ServedModels, RequestsForModelsThatDoNotFitTogetherAreAllAnswered) {
  Loads loads;
  SeveralModels served(three(loads, std::chrono::milliseconds(2)), {.max_loaded = 1});
  std::vector<std::future<ClientResponse>> answers;
  for (int i = 0; i < 24; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i % 3)) + ":1b";
    answers.push_back(std::async(std::launch::async, [&served, name] { return served.chat(name); }));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ClientResponse answer = answers[i].get();
    EXPECT_EQ(answer.status, 200) << answer.body;
    const std::string wanted = std::string("I am ") + static_cast<char>('a' + i % 3);
    EXPECT_NE(answer.body.find(wanted), std::string::npos) << answer.body;
  }
  EXPECT_EQ(loads.most_loaded, 1);
}

TEST(ServedModels, AModelThatIsInUseDoesNotLeaveBeforeItsRequestsHaveEnded) {
  Loads loads;
  SeveralModels served(three(loads, std::chrono::milliseconds(40)), {.max_loaded = 1});
  std::future<ClientResponse> slow = std::async(std::launch::async, [&] { return served.chat("a:1b"); });
  ASSERT_TRUE(eventually([&] { return loads.num_loaded == 1; }));
  EXPECT_EQ(served.chat("b:1b").status, 200);
  const ClientResponse answer = slow.get();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("I am a:1b"), std::string::npos);
}

TEST(ServedModels, AnUnusedModelLeavesAfterItsKeepAlive) {
  Loads loads;
  SeveralModels served(three(loads), {.keep_alive = std::chrono::seconds(1)});
  served.chat("a:1b");
  EXPECT_EQ(loads.num_loaded, 1);
  EXPECT_TRUE(eventually([&] { return loads.num_loaded == 0; }));
  EXPECT_EQ(served.chat("a:1b").status, 200);
}

TEST(ServedModels, AModelLeavesWhenAnOperatorSaysSo) {
  Loads loads;
  SeveralModels served(three(loads), {});
  served.chat("b:1b");
  EXPECT_EQ(served.post("/v1/models/unload", R"({"model":"b:1b"})").body, R"({"name":"b:1b","was_loaded":true})");
  EXPECT_TRUE(eventually([&] { return loads.num_loaded == 0; }));
  EXPECT_EQ(served.post("/v1/models/unload", R"({"model":"b:1b"})").body, R"({"name":"b:1b","was_loaded":false})");
  EXPECT_EQ(served.post("/v1/models/load", R"({"model":"c"})").body, R"({"name":"c:1b","state":"loaded"})");
  EXPECT_EQ(loads.num_loaded, 1);
  EXPECT_EQ(served.post("/v1/models/unload", R"({"model":"d"})").status, 404);
  EXPECT_EQ(served.post("/v1/models/unload", "{}").status, 400);
}

TEST(ServedModels, AModelThatCannotBeLoadedIsSaidAndTriedAgain) {
  Loads loads;
  SeveralModels served(three(loads), {});
  loads.fails = true;
  const ClientResponse failed = served.chat("b:1b");
  EXPECT_EQ(failed.status, 500);
  EXPECT_NE(failed.body.find(R"(the model \"b:1b\" could not be loaded: b:1b.gguf: the file ends too early)"), std::string::npos)
      << failed.body;
  EXPECT_NE(served.get("/v1/ps").body.find(R"("failure":"b:1b.gguf: the file ends too early")"), std::string::npos);
  loads.fails = false;
  EXPECT_EQ(served.chat("b:1b").status, 200);
}

TEST(ServedModels, OllamasListsHaveAllModelsAndThoseInMemory) {
  Loads loads;
  SeveralModels served(three(loads), {});
  served.chat("b:1b");
  const std::string all = served.get("/api/tags").body, loaded = served.get("/api/ps").body;
  for (const char* const name : {"a:1b", "b:1b", "c:1b"}) EXPECT_NE(all.find(name), std::string::npos) << all;
  EXPECT_NE(loaded.find("b:1b"), std::string::npos) << loaded;
  EXPECT_EQ(loaded.find("a:1b"), std::string::npos) << loaded;
}

TEST(ServedModels, MetricsHaveARowForEachModel) {
  Loads loads;
  SeveralModels served(three(loads), {});
  served.chat("b:1b");
  const std::string metrics = served.get("/metrics").body;
  EXPECT_NE(metrics.find("kvasir_requests_running{model=\"a:1b\"} 0\n"), std::string::npos);
  EXPECT_NE(metrics.find("kvasir_time_to_first_token_seconds_count{model=\"b:1b\"} 1\n"), std::string::npos);
  EXPECT_NE(metrics.find("kvasir_time_to_first_token_seconds_count{model=\"a:1b\"} 0\n"), std::string::npos);
}

TEST(ServedModels, ABackgroundResponseKeepsItsModel) {
  Loads loads;
  SeveralModels served(three(loads, std::chrono::milliseconds(20)), {.max_loaded = 1});
  const ClientResponse queued = served.post("/v1/responses", R"({"model":"a:1b","input":"who?","background":true})");
  ASSERT_EQ(queued.status, 200) << queued.body;
  EXPECT_EQ(served.chat("b:1b").status, 200);
  const std::size_t at = queued.body.find("resp_");
  const std::string id = queued.body.substr(at, queued.body.find('"', at) - at);
  EXPECT_TRUE(eventually([&] { return served.get("/v1/responses/" + id).body.find("I am a:1b") != std::string::npos; }))
      << served.get("/v1/responses/" + id).body;
}

TEST(ServedModels, TheServerEndsWhileAModelIsLoading) {
  Loads loads;
  std::vector<ServedModel> models = three(loads);
  models[0].load = [](const std::atomic<bool>& is_cancelled) -> Result<std::unique_ptr<Engine>> {
    while (!is_cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return make_error(ErrorKind::kCancelled, "loading was stopped");
  };
  std::future<ClientResponse> waiting;
  {
    SeveralModels served(std::move(models), {});
    waiting = std::async(std::launch::async, [port = served.server->port()] {
      return HttpClient(port).request("POST", "/v1/completions", R"({"model":"a:1b","prompt":"x"})");
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  static_cast<void>(waiting.wait_for(std::chrono::seconds(10)));
}

}  // namespace kvasir::server::served_models_test
