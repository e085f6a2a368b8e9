// A server's beginning and end.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::lifecycle_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr char kStream[] = R"({"messages":[{"role":"user","content":"Hi"}],"stream":true})";

TEST(Server, SaysThatItsPortIsInUse) {
  const RunningServer first;
  FakeEngine engine;
  const auto second = Server::create(engine, {.port = first.port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kMachine);
  EXPECT_NE(second.error().message.find(std::to_string(first.port())), std::string::npos);
}

TEST(Server, RefusesAHostThatDoesNotResolveAndAnOriginThatIsNone) {
  FakeEngine engine;
  EXPECT_EQ(Server::create(engine, {.host = "256.0.0.1", .port = 0}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Server::create(engine, {.port = 0, .cors_origins = {"chat.example"}}).error().kind,
            ErrorKind::kUsage);
  for (const char* path : {"llm", "/", "/llm/", "/a//b", "/a?b"}) {
    EXPECT_FALSE(Server::create(engine, {.port = 0, .base_path = path})) << path;
  }
}

TEST(Server, WarnsWhenOtherMachinesCanReachIt) {
  FakeEngine engine;
  std::vector<std::string> warnings;
  const auto warn = [&](std::string_view line) { warnings.emplace_back(line); };
  ASSERT_TRUE(Server::create(engine, {.port = 0, .warn = warn}));
  EXPECT_TRUE(warnings.empty());
  ASSERT_TRUE(Server::create(engine, {.host = "0.0.0.0", .port = 0, .warn = warn}));
  ASSERT_EQ(warnings.size(), 1u);
}

TEST(Server, TakesTheModelsNameUnlessGivenOne) {
  FakeEngine engine;
  RunningServer server({}, {.served_model_name = "my-model"});
  const std::string models = HttpClient(server.port()).request("GET", "/v1/models").body;
  EXPECT_TRUE(models.contains("\"my-model\""));
  EXPECT_TRUE(models.contains("\"capabilities\":[\"completion\"")) << models;
}

TEST(Stop, LetsARunningStreamFinishAndRefusesNewOnes) {
  RunningServer server({.answer = std::string(60, 'a'), .step = 10ms});
  HttpClient streaming(server.port()), kept(server.port());
  streaming.send(http_request("POST", "/v1/chat/completions", kStream));
  streaming.receive_until("\"a\"");
  EXPECT_EQ(kept.request("GET", "/health/ready").status, 200);
  server.server->stop();
  std::this_thread::sleep_for(50ms);
  HttpClient fresh(server.port());
  const auto draining = fresh.request("GET", "/health/ready");
  EXPECT_EQ(draining.status, 503);
  EXPECT_TRUE(draining.body.starts_with(R"({"status":"draining","percent":)")) << draining.body;
  const auto refused = kept.request("POST", "/v1/chat/completions", kStream);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "2");
  EXPECT_EQ(refused.header("connection"), "close");
  const auto response = streaming.receive();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(sse_events(response.body).back(), "[DONE]");
  server.join();
}

// gRPC does the same (grpc_test.cc).
TEST(Stop, RefusesWhateverNeedsTheEngineAndAnswersTheRest) {
  RunningServer server({.prefill = 60s});
  HttpClient waiting(server.port());
  waiting.send(http_request("POST", "/v1/chat/completions", kStream));
  ASSERT_TRUE(eventually([&] { return server.engine.num_running() == 1; }));
  server.server->stop();
  ASSERT_TRUE(
      eventually([&] { return HttpClient(server.port()).request("GET", "/health/ready").status == 503; }));
  const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":1})";
  for (const auto& [path, body] :
       std::vector<std::pair<std::string, std::string>>{{"/v1/chat/completions", chat},
                                                        {"/v1/messages", chat},
                                                        {"/v1/completions", R"({"prompt":"a"})"},
                                                        {"/v1/generate", R"({"prompt":"a"})"},
                                                        {"/v1/responses", R"({"input":"a"})"},
                                                        {"/v1/embeddings", R"({"input":"a"})"}}) {
    const auto refused = HttpClient(server.port()).request("POST", path, body);
    EXPECT_EQ(refused.status, 503) << path;
    EXPECT_NE(refused.body.find("the server is shutting down"), std::string::npos) << refused.body;
    EXPECT_EQ(refused.header("retry-after"), "2") << path;
  }
  for (const auto& [path, body] :
       std::vector<std::pair<std::string, std::string>>{{"/v1/messages/count_tokens", chat},
                                                        {"/tokenize", R"({"prompt":"a"})"},
                                                        {"/detokenize", R"({"tokens":[65]})"}}) {
    EXPECT_EQ(HttpClient(server.port()).request("POST", path, body).status, 200) << path;
  }
  for (const char* path : {"/tokenizer_info", "/v1/models", "/metrics", "/health/live"}) {
    EXPECT_EQ(HttpClient(server.port()).request("GET", path).status, 200) << path;
  }
}

TEST(Stop, CutsStreamsWhenTheDrainTimeIsOver) {
  RunningServer server({.answer = std::string(10'000, 'a'), .step = 10ms, .max_model_len_tokens = 1 << 20},
                       {.drain_ms = 100});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/chat/completions", kStream));
  client.receive_until("\"a\"");
  server.server->stop();
  const auto response = client.receive();
  EXPECT_NE(response.body.find("shutting_down"), std::string::npos);
  EXPECT_EQ(response.body.find("[DONE]"), std::string::npos);
  server.join();
}

TEST(Stop, ASecondTimeEndsAtOnce) {
  RunningServer server({.prefill = 60s});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/chat/completions", kStream));
  while (server.engine.num_running() == 0) std::this_thread::sleep_for(5ms);
  server.server->stop();
  const auto began = Clock::now();
  server.server->stop();
  server.join();
  EXPECT_LT(Clock::now() - began, 2s);
}

// Memory, in practice.
TEST(Server, AnswersAndGoesOnWhenARequestCannotBeProcessed) {
  for (const std::int64_t call : {1, 2}) {  // as it comes, and when the engine has begun with it
    const RunningServer server({.step = 20ms, .max_requests = 4, .throws_at_call = call});
    HttpClient client(server.port());
    const ClientResponse failed =
        client.request("POST", "/v1/embeddings", R"({"input":["a","b","c","d","e","f","g","h"]})");
    EXPECT_EQ(failed.status, 503) << call << failed.body;
    EXPECT_NE(failed.body.find("out of memory"), std::string::npos) << failed.body;
    EXPECT_NE(failed.body.find("the request could not be processed"), std::string::npos) << failed.body;
    EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
    EXPECT_EQ(client.request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":2})").status, 200);
  }
}

TEST(Stop, WithNothingToDoIsImmediate) {
  RunningServer server;
  HttpClient idle(server.port());
  EXPECT_EQ(idle.request("GET", "/health/live").status, 200);
  const auto began = Clock::now();
  server.server->stop();
  server.join();
  EXPECT_LT(Clock::now() - began, 1s);
}

}  // namespace
}  // namespace kvasir::server::lifecycle_test
