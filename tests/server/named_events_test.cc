// Streams of named events as they go over the wire; tests/clients checks whole ones.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <tuple>
#include <vector>

#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::named_events_test {
namespace {

const std::string kBody =
    R"({"model":"fake","max_tokens":8,"messages":[{"role":"user","content":"Hi"}],"stream":true})";

TEST(MessageStream, NamesItsEventsAndEndsWithoutDone) {
  const RunningServer server({.answer = "a"});
  const auto response = HttpClient(server.port()).request("POST", "/v1/messages", kBody);
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_TRUE(response.body.starts_with("event: message_start\ndata: {\"type\":\"message_start\""))
      << response.body;
  EXPECT_TRUE(response.body.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"))
      << response.body;
}

TEST(Messages, HaveTheirRequestIdUnderTheNameThatAnthropicsClientsKnow) {
  const RunningServer server({.answer = "a"});
  HttpClient client(server.port());
  const std::string refused = R"({"max_tokens":1,"messages":[]})";
  for (const auto& [path, body, status] :
       {std::tuple("/v1/messages", kBody, 200), std::tuple("/v1/messages", refused, 400),
        std::tuple("/v1/messages/count_tokens", refused, 400)}) {
    const auto answer = client.request("POST", path, body);
    EXPECT_EQ(answer.status, status);
    EXPECT_TRUE(answer.header("request-id").starts_with("req_"));
    EXPECT_EQ(answer.header("request-id"), answer.header("x-request-id"));
  }
  EXPECT_EQ(client.request("GET", "/v1/models").header("request-id"), "");
}

TEST(MessageStream, TellsOfAFailureInItsOwnForm) {
  const RunningServer server({.fail_after_tokens = 2});
  const auto response = HttpClient(server.port()).request("POST", "/v1/messages", kBody);
  EXPECT_EQ(response.status, 200);
  const std::size_t error = response.body.find("event: error\n");
  ASSERT_NE(error, std::string::npos) << response.body;
  EXPECT_NE(response.body.find(R"({"type":"error","error":{"type":"api_error")", error), std::string::npos);
  EXPECT_EQ(response.body.find("message_stop"), std::string::npos);
}

TEST(MessageStream, HasAStatusUntilItHasBegun) {
  const RunningServer server({.fail_after_tokens = 0});
  const auto response = HttpClient(server.port()).request("POST", "/v1/messages", kBody);
  EXPECT_EQ(response.status, 500);
  EXPECT_TRUE(response.body.starts_with(R"({"type":"error","error":{"type":"api_error")")) << response.body;
}

// The values of "completed_at" in a body.
std::vector<std::string> completion_times(const std::string& body) {
  const std::string name = R"("completed_at":)";
  std::vector<std::string> times;
  for (std::size_t at = body.find(name); at != body.npos; at = body.find(name, at)) {
    at += name.size();
    times.push_back(body.substr(at, body.find(',', at) - at));
  }
  return times;
}

TEST(Responses, SayWhenTheyWereCompleted) {
  const RunningServer server({.answer = "ab"});
  HttpClient client(server.port());
  const auto ask = [&](const std::string& more) {
    return completion_times(client.request("POST", "/v1/responses", R"({"input":"Hi")" + more + "}").body);
  };
  const std::time_t began = std::time(nullptr);
  for (const auto& times : {ask(""), ask(R"(,"stream":true)")}) {
    ASSERT_FALSE(times.empty());
    for (std::size_t i = 0; i + 1 < times.size(); ++i) EXPECT_EQ(times[i], "null");  // in progress
    ASSERT_NE(times.back(), "null");
    EXPECT_GE(std::stoll(times.back()), began);
    EXPECT_LE(std::stoll(times.back()), std::time(nullptr));
  }
  EXPECT_EQ(ask(R"(,"max_output_tokens":1)"), (std::vector<std::string>{"null"}));  // incomplete
}

TEST(ResponseStream, TellsOfAFailureInALastEvent) {
  const RunningServer server({.fail_after_tokens = 2});
  const auto response =
      HttpClient(server.port())
          .request("POST", "/v1/responses", R"({"model":"fake","input":"Hi","stream":true})");
  EXPECT_EQ(response.status, 200);
  const std::size_t failed = response.body.find("event: response.failed\n");
  ASSERT_NE(failed, std::string::npos) << response.body;
  EXPECT_NE(response.body.find(R"("status":"failed","error":{"code":"server_error","message":")", failed),
            std::string::npos);
  EXPECT_EQ(response.body.find("response.completed"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::server::named_events_test
