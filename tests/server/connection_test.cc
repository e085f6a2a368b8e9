// Connections: keep-alive, pipelining, time limits.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "eventually.h"
#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::connection_test {
namespace {

using namespace std::chrono_literals;

std::string completion(const std::string& prompt) {
  return R"({"prompt":")" + prompt + R"(","echo":true,"max_tokens":1})";
}

TEST(Connection, AnswersPipelinedRequestsInOrder) {
  const RunningServer server({.answer = "!", .step = 2ms});
  HttpClient client(server.port());
  std::string requests;
  for (const char* prompt : {"a", "b", "c"})
    requests += http_request("POST", "/v1/completions", completion(prompt));
  client.send(requests + http_request("GET", "/health/live"));
  for (const char* text : {"\"a!\"", "\"b!\"", "\"c!\""}) {
    const auto response = client.receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_NE(response.body.find(text), std::string::npos) << response.body;
  }
  EXPECT_EQ(client.receive().body, R"({"status":"live"})");
}

TEST(Connection, AnswersWhatWasPipelinedBeforeTheClientEnded) {
  const RunningServer server({.answer = "!"});
  for (int round = 0; round < 50; ++round) {
    HttpClient client(server.port());
    std::string requests;
    for (int i = 0; i < 20; ++i) requests += http_request("GET", "/health/live");
    client.send(requests + http_request("POST", "/v1/completions", completion("a")));
    const auto end = std::chrono::steady_clock::now() + round * 20us;  // while one or the other is answered
    while (std::chrono::steady_clock::now() < end) {
    }
    client.finish_sending();
    for (int i = 0; i < 20; ++i) ASSERT_EQ(client.receive().status, 200) << round << ": " << i;
    int status = client.receive().status;
    if (status == 100) status = client.receive().status;  // looks whether the client still reads
    ASSERT_EQ(status, 200) << round;
    ASSERT_TRUE(client.closes_within(2s)) << round;
  }
}

TEST(Connection, NoticesThatAClientWhoPipelinedALotHasGone) {
  const RunningServer server({.answer = std::string(200, 'a'), .step = 20ms});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":200})"));
  std::string more;
  for (int i = 0; i < 4000; ++i) more += http_request("GET", "/health/live");
  client.send(more);
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 1; }));
  client.reset();
  EXPECT_TRUE(eventually([&] { return server.engine.num_cancelled() == 1; }));
}

TEST(Connection, TakesAThousandPipelinedRequests) {
  const RunningServer server;
  HttpClient client(server.port());
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += http_request("GET", "/health/live");
  client.send(requests);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.receive().status, 200) << i;
}

TEST(Connection, TakesARequestByteByByte) {
  const RunningServer server;
  HttpClient client(server.port());
  for (const char byte : http_request("POST", "/v1/completions", completion("a"))) client.send({&byte, 1});
  EXPECT_EQ(client.receive().status, 200);
}

TEST(Connection, ClosesWhenTheClientAsks) {
  const RunningServer server;
  HttpClient client(server.port());
  const auto response = client.request("GET", "/health/live", {}, {"Connection: close"});
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.closes_within(2s));
}

TEST(Connection, ClosesAfterARefusalThatLeavesTheFramingInDoubt) {
  const RunningServer server;
  HttpClient client(server.port());
  client.send("BAD\r\n\r\nGET /health/live HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.receive().status, 400);
  EXPECT_TRUE(client.closes_within(3s));
}

TEST(Connection, StaysOpenAfterARefusedBody) {
  const RunningServer server;
  HttpClient client(server.port());
  EXPECT_EQ(client.request("POST", "/v1/completions", "{").status, 400);
  EXPECT_EQ(client.request("GET", "/health/live").status, 200);
}

TEST(Connection, AHeadAnswerHasNoBody) {
  const RunningServer server;
  HttpClient client(server.port());
  const auto head = client.request("HEAD", "/health/live");
  EXPECT_EQ(head.header("content-length"), "17");
  EXPECT_EQ(client.request("GET", "/health/live").body, R"({"status":"live"})");
}

TEST(Connection, InvitesTheBodyThatTheClientHoldsBack) {
  const RunningServer server;
  HttpClient client(server.port());
  const std::string body = completion("a");
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send(body);
  EXPECT_EQ(client.receive().status, 200);
}

TEST(Connection, GivesEachAnswerAnIdOfItsOwn) {
  const RunningServer server;
  HttpClient client(server.port());
  const auto first = client.request("GET", "/health/live"), second = client.request("GET", "/health/live");
  EXPECT_TRUE(first.header("x-request-id").starts_with("req_"));
  EXPECT_NE(first.header("x-request-id"), second.header("x-request-id"));
  EXPECT_NE(first.header("openai-processing-ms"), "");
  EXPECT_NE(first.header("date"), "");
}

TEST(Connection, AWarningCannotAddAHeader) {
  const RunningServer server;
  HttpClient client(server.port());
  const auto response = client.request("POST", "/v1/completions", R"({"prompt":"a","x\r\nSet-Cookie: a":1})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("set-cookie"), "");
  EXPECT_NE(response.header("x-kvasir-warning"), "");
}

TEST(TimeLimit, AHeaderThatDoesNotArriveGets408) {
  const RunningServer server({}, {.limits = {.header_timeout = 100ms}});
  HttpClient client(server.port());
  client.send("GET /health/live HTTP/1.1\r\nHo");
  const auto response = client.receive();
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("timeout_error"), std::string::npos);
  EXPECT_TRUE(client.closes_within(3s));
}

// However much of it came at once.
TEST(TimeLimit, ABodyThatStopsInTheMiddleGets408) {
  const RunningServer server({}, {.limits = {.body_timeout = 100ms}});
  HttpClient client(server.port());
  const std::string half(1 << 20, 'x');  // at 1 KiB/s a quarter of an hour
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 4000000\r\n\r\n" + half);
  EXPECT_EQ(client.receive().status, 408);
}

TEST(TimeLimit, ABodyThatDoesNotArriveGets408) {
  const RunningServer server({}, {.limits = {.body_timeout = 100ms}});
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_EQ(client.receive().status, 408);
}

TEST(TimeLimit, AnIdleConnectionCloses) {
  const RunningServer server({}, {.limits = {.idle_timeout = 100ms}});
  HttpClient fresh(server.port()), used(server.port());
  EXPECT_EQ(used.request("GET", "/health/live").status, 200);
  EXPECT_TRUE(fresh.closes_within(2s));
  EXPECT_TRUE(used.closes_within(2s));
}

TEST(TimeLimit, AnAnswerMayTakeLongerThanAnIdleConnection) {
  const RunningServer server({.prefill = 400ms},
                             {.limits = {.header_timeout = 100ms, .idle_timeout = 100ms}});
  EXPECT_EQ(HttpClient(server.port()).request("POST", "/v1/completions", completion("a")).status, 200);
}

TEST(Connection, OneTooManyIsClosed) {
  const RunningServer server({}, {.limits = {.connections = {1, 503, ""}}});
  HttpClient first(server.port());
  EXPECT_EQ(first.request("GET", "/health/live").status, 200);
  EXPECT_TRUE(HttpClient(server.port()).closes_within(2s));
  EXPECT_EQ(first.request("GET", "/health/live").status, 200);
}

TEST(Connection, OneTooManyOfAnAddressIsClosedUntilAnotherEnds) {
  const RunningServer server({}, {.limits = {.connections_per_address = {1, 503, ""}}});
  HttpClient first(server.port());
  EXPECT_EQ(first.request("GET", "/health/live").status, 200);
  EXPECT_TRUE(HttpClient(server.port()).closes_within(2s));
  first.close();
  const auto deadline = std::chrono::steady_clock::now() + 2s;
  int status = 0;
  while (status != 200 && std::chrono::steady_clock::now() < deadline) {
    status = HttpClient(server.port()).request("GET", "/health/live").status;
  }
  EXPECT_EQ(status, 200);
}

TEST(Connection, EmptyLinesDoNotKeepItOpen) {
  const RunningServer server({}, {.limits = {.idle_timeout = 300ms}});
  HttpClient client(server.port());
  const auto deadline = std::chrono::steady_clock::now() + 3s;
  bool closed = false;
  while (!closed && std::chrono::steady_clock::now() < deadline) {
    client.send("\r\n");
    closed = client.closes_within(50ms);
  }
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace kvasir::server::connection_test
