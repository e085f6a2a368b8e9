// The contents of the log and the metrics of requests, and what they never say.
#include "server/observe/access_log.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::access_log_test {
namespace {

using namespace std::chrono_literals;

class AccessLogTest : public testing::Test {
 protected:
  AccessLogTest()
      : path_((std::filesystem::temp_directory_path() / ("kvasir-access-" + std::to_string(::getpid())))
                  .string()) {}
  ~AccessLogTest() override { std::filesystem::remove(path_); }

  ServerConfig config() const {
    ServerConfig config;
    config.access_log_file = path_;
    return config;
  }
  // The log, once it has so many lines.
  std::vector<std::string> lines(std::size_t count) const {
    std::vector<std::string> lines;
    for (int i = 0; i < 200 && lines.size() < count; ++i) {
      std::this_thread::sleep_for(10ms);
      lines.clear();
      std::ifstream file(path_);
      for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    EXPECT_EQ(lines.size(), count);
    lines.resize(count);
    return lines;
  }

  const std::string path_;
};

TEST_F(AccessLogTest, HasALineForEachRequestAndNoTextOfIt) {
  const RunningServer server({}, config());
  HttpClient client(server.port());
  const ClientResponse answer = client.request(
      "POST", "/v1/completions", R"({"prompt":"secret words","max_tokens":3})",
      {"X-Request-Id: mine", "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
  ASSERT_EQ(answer.status, 200);
  client.request("GET", "/nowhere?prompt=secret");
  const auto log = lines(2);
  simdjson::dom::parser parser;
  const simdjson::dom::object first = parser.parse(log[0]).get_object().value();
  EXPECT_EQ(first["request_id"].get_string().value(), answer.header("x-request-id"));
  EXPECT_EQ(first["client_request_id"].get_string().value(), "mine");
  EXPECT_EQ(first["trace_id"].get_string().value(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(first["path"].get_string().value(), "/v1/completions");
  EXPECT_EQ(first["status"].get_int64().value(), 200);
  EXPECT_EQ(first["api"].get_string().value(), "openai");
  EXPECT_FALSE(first["model"].get_string().value().empty());
  EXPECT_EQ(first["prompt_tokens"].get_int64().value(), 12);
  EXPECT_EQ(first["completion_tokens"].get_int64().value(), 3);
  for (const char* member :
       {"total_ms", "flush_ms", "preprocess_ms", "queue_ms", "prefill_ms", "decode_ms", "cpu_ms"}) {
    EXPECT_GE(first[member].get_double().value(), 0.0) << member;
  }
  EXPECT_NE(log[1].find(R"("path":"/nowhere","status":404)"), std::string::npos) << log[1];
  for (const std::string& line : log) EXPECT_EQ(line.find("secret"), std::string::npos) << line;
}

TEST_F(AccessLogTest, NamesTheApiOfARoute) {
  const RunningServer server({}, config());
  HttpClient client(server.port());
  const std::pair<const char*, const char*> kApis[] = {{"/v1/models", "openai"},
                                                       {"/props", "llama-server"},
                                                       {"/api/version", "ollama"},
                                                       {"/health", "kvasir"}};
  for (const auto& [path, api] : kApis) client.request("GET", path);
  client.request("POST", "/v1/messages", "{}");
  client.request("GET", "/nowhere");
  const auto log = lines(6);
  for (std::size_t i = 0; i < std::size(kApis); ++i) {
    EXPECT_NE(log[i].find(std::string(R"("api":")") + kApis[i].second + '"'), std::string::npos) << log[i];
  }
  EXPECT_NE(log[4].find(R"("api":"anthropic")"), std::string::npos) << log[4];
  EXPECT_EQ(log[5].find(R"("api":)"), std::string::npos) << log[5];
}

TEST_F(AccessLogTest, SaysWhoLeft) {
  const RunningServer server({.step = 20ms, .max_model_len_tokens = 100'000}, config());
  {
    HttpClient client(server.port());
    client.send(http_request("POST", "/v1/completions",
                             R"({"prompt":"a","max_tokens":5000,"ignore_eos":true,"stream":true})"));
    client.receive_until("data:");
  }
  EXPECT_NE(lines(1)[0].find(R"("aborted":"disconnected")"), std::string::npos) << lines(1)[0];
}

TEST_F(AccessLogTest, WarnsOnceOfLinesThatCannotBeWritten) {
  std::vector<std::string> warnings;
  ServerConfig config;
  config.access_log_file = "/dev/full";
  config.warn = [&](std::string_view line) { warnings.emplace_back(line); };
  {
    const RunningServer server({}, config);
    HttpClient client(server.port());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.request("GET", "/v1/models").status, 200);
  }
  EXPECT_EQ(warnings, std::vector<std::string>{"access log /dev/full: No space left on device"});
}

TEST_F(AccessLogTest, MetricsSumCostsByTenantAndRoute) {
  const RunningServer server;
  HttpClient client(server.port());
  for (int i = 0; i < 3; ++i) client.request("POST", "/v1/completions", R"({"prompt":"abc","max_tokens":2})");
  const std::string text = client.request("GET", "/metrics").body;
  EXPECT_NE(text.find("kvasir_cost_requests_total{tenant=\"\",route=\"/v1/completions\"} 3\n"),
            std::string::npos);
  EXPECT_NE(text.find("kvasir_cost_prompt_tokens_total{tenant=\"\",route=\"/v1/completions\"} 9\n"),
            std::string::npos);
  EXPECT_NE(text.find("kvasir_cost_generated_tokens_total{tenant=\"\",route=\"/v1/completions\"} 6\n"),
            std::string::npos);
}

}  // namespace
}  // namespace kvasir::server::access_log_test
