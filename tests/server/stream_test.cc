// Streams as they go over the wire.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::stream_test {
namespace {

using namespace std::chrono_literals;

std::string chat(const std::string& more = {}) {
  return R"({"messages":[{"role":"user","content":"Hi"}],"stream":true)" + more + "}";
}

// The value at a pointer of each event but [DONE], as compact JSON; "-" where there is none.
std::vector<std::string> values_at(const std::vector<std::string>& events, const std::string& pointer) {
  std::vector<std::string> values;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    simdjson::dom::parser parser;
    simdjson::dom::element root, value;
    if (parser.parse(event).get(root)) return {"not JSON: " + event};
    values.push_back(root.at_pointer(pointer).get(value) ? "-" : std::string(simdjson::minify(value)));
  }
  return values;
}

using Values = std::vector<std::string>;

// The id of a request in the engine's log is the id in its client's answer.
TEST(Answer, HasTheIdThatTheEngineKnowsItBy) {
  const RunningServer server({.answer = "Hi!"});
  for (const auto& [path, body] : {std::pair("/v1/chat/completions", chat()),
                                   std::pair("/v1/completions", std::string(R"({"prompt":"Hi"})"))}) {
    const auto response = HttpClient(server.port()).request("POST", path, body);
    const std::string id = server.engine.last_request().client_id;
    EXPECT_GT(id.size(), 20u);
    EXPECT_NE(response.body.find(R"("id":")" + id + '"'), std::string::npos);
  }
}

TEST(ChatStream, BeginsWithTheRoleAndEndsWithOneFinishReasonAndDone) {
  const RunningServer server({.answer = "Hi!"});
  const auto response = HttpClient(server.port()).request("POST", "/v1/chat/completions", chat());
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.header("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(response.header("x-accel-buffering"), "no");
  EXPECT_EQ(response.header("cache-control"), "no-cache, no-transform");
  const auto events = sse_events(response.body);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(values_at(events, "/choices/0/delta/role"), (Values{R"("assistant")", "-", "-", "-", "-"}));
  EXPECT_EQ(values_at(events, "/choices/0/delta/content"),
            (Values{R"("")", R"("H")", R"("i")", R"("!")", "-"}));
  EXPECT_EQ(values_at(events, "/choices/0/finish_reason"),
            (Values{"null", "null", "null", "null", R"("stop")"}));
  EXPECT_EQ(values_at(events, "/usage"), Values(5, "-"));
  const auto ids = values_at(events, "/id");
  EXPECT_EQ(ids, Values(5, ids[0]));
}

TEST(ChatStream, GivesTheUsageInALastChunkWithoutChoices) {
  const RunningServer server({.answer = "Hi"});
  const auto response = HttpClient(server.port())
                            .request("POST", "/v1/chat/completions",
                                     chat(R"(,"stream_options":{"include_usage":true},"max_tokens":1)"));
  const auto events = sse_events(response.body);
  EXPECT_EQ(values_at(events, "/usage/completion_tokens"), (Values{"-", "-", "-", "1"}));
  EXPECT_EQ(values_at(events, "/usage")[0], "null");
  EXPECT_EQ(values_at(events, "/choices").back(), "[]");
  EXPECT_EQ(values_at(events, "/choices/0/finish_reason"), (Values{"null", "null", R"("length")", "-"}));
}

TEST(ChatStream, InterleavesChoicesEachWithItsOwnRoleAndEnd) {
  const RunningServer server({.answer = "a"});
  const auto response = HttpClient(server.port()).request("POST", "/v1/chat/completions", chat(R"(,"n":2)"));
  const auto events = sse_events(response.body);
  EXPECT_EQ(values_at(events, "/choices/0/index"), (Values{"0", "0", "1", "1", "0", "1"}));
  EXPECT_EQ(values_at(events, "/choices/0/finish_reason"),
            (Values{"null", "null", "null", "null", R"("stop")", R"("stop")"}));
}

TEST(ChatStream, SendsOnlyWholeCharacters) {
  const RunningServer server({.answer = "a\xF0\x9F\x98\x80"});
  const auto response = HttpClient(server.port()).request("POST", "/v1/chat/completions", chat());
  EXPECT_EQ(values_at(sse_events(response.body), "/choices/0/delta/content"),
            (Values{R"("")", R"("a")", "\"\xF0\x9F\x98\x80\"", "-"}));
}

TEST(ChatStream, CarriesLogprobsOfEachToken) {
  const RunningServer server({.answer = "ab"});
  const auto response =
      HttpClient(server.port()).request("POST", "/v1/chat/completions", chat(R"(,"logprobs":true)"));
  const auto events = sse_events(response.body);
  EXPECT_EQ(values_at(events, "/choices/0/logprobs/content/0/token"), (Values{"-", R"("a")", R"("b")", "-"}));
}

TEST(ChatStream, TellsOfAFailureAndEndsWithoutDone) {
  const RunningServer server({.fail_after_tokens = 2});
  const auto response = HttpClient(server.port()).request("POST", "/v1/chat/completions", chat());
  EXPECT_EQ(response.status, 200);
  const auto events = sse_events(response.body);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(values_at({events.back()}, "/error/type"), Values{R"("server_error")"});
}

TEST(ChatStream, PingsWhileThePromptIsComputed) {
  const RunningServer server({.answer = "a", .prefill = 1300ms});
  const auto response = HttpClient(server.port()).request("POST", "/v1/chat/completions", chat());
  EXPECT_TRUE(response.body.starts_with(": ping\n\ndata: {")) << response.body;
}

TEST(CompletionStream, SendsTextAndEchoesThePromptFirst) {
  const RunningServer server({.answer = "!?"});
  const auto response =
      HttpClient(server.port())
          .request("POST", "/v1/completions", R"({"prompt":"Hi","stream":true,"echo":true,"logprobs":0})");
  const auto events = sse_events(response.body);
  EXPECT_EQ(values_at(events, "/choices/0/text"), (Values{R"("Hi!")", R"("?")", R"("")"}));
  EXPECT_EQ(values_at(events, "/choices/0/logprobs/tokens"),
            (Values{R"(["H","i","!"])", R"(["?"])", R"(["<|im_end|>"])"}));
  EXPECT_EQ(values_at(events, "/choices/0/logprobs/text_offset"), (Values{"[0,1,2]", "[3]", "[4]"}));
  EXPECT_EQ(values_at(events, "/choices/0/finish_reason"), (Values{"null", "null", R"("stop")"}));
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(Stream, EndsByClosingForHttp10) {
  const RunningServer server({.answer = "a"});
  HttpClient client(server.port());
  const std::string body = chat();
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const auto response = client.receive();
  EXPECT_EQ(response.header("transfer-encoding"), "");
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_EQ(sse_events(response.body).back(), "[DONE]");
}

TEST(Stream, LeavesTheConnectionReadyForTheNextRequest) {
  const RunningServer server({.answer = "a"});
  HttpClient client(server.port());
  EXPECT_EQ(client.request("POST", "/v1/chat/completions", chat()).status, 200);
  EXPECT_EQ(client.request("GET", "/health/live").status, 200);
}

TEST(Disconnect, CancelsAStream) {
  RunningServer server({.answer = std::string(1000, 'a'), .step = 5ms, .max_model_len_tokens = 4096});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/chat/completions", chat()));
  client.receive_until("\"a\"");
  EXPECT_EQ(server.engine.num_running(), 1);
  client.close();
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
  EXPECT_EQ(server.engine.num_cancelled(), 1);
}

TEST(Disconnect, CancelsEveryRequestOfAnAnswerInOnePieceEvenDuringPrefill) {
  RunningServer server({.prefill = 60s});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/completions", R"({"prompt":["a","b","c"]})"));
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 3; }));
  client.close();
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
  EXPECT_EQ(server.engine.num_cancelled(), 3);
}

TEST(HalfClose, GetsAWholeStream) {
  RunningServer server({.answer = std::string(100, 'a'), .step = 2ms});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/chat/completions", chat()));
  client.receive_until("\"a\"");
  client.finish_sending();
  const auto response = client.receive();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(sse_events(response.body).back(), "[DONE]");
}

TEST(HalfClose, GetsItsAnswersAfterAnInterimOne) {
  RunningServer server({.prefill = 100ms});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/completions", R"({"prompt":"a"})") +
              http_request("GET", "/health/live"));
  client.finish_sending();
  EXPECT_EQ(client.receive().status, 100);
  const auto response = client.receive();
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.closes_within(2s));
  EXPECT_EQ(server.engine.num_cancelled(), 0);
}

// The end of the input may be seen before the answer, with it or after it.
TEST(HalfClose, IsClosedOnceAllIsAnswered) {
  RunningServer server;
  for (int attempt = 0; attempt < 200; ++attempt) {
    HttpClient client(server.port());
    client.send(http_request("GET", attempt % 2 == 0 ? "/health/live" : "/nope"));
    if (attempt % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(attempt));
    client.finish_sending();
    ASSERT_EQ(client.receive().status, attempt % 2 == 0 ? 200 : 404);
    ASSERT_TRUE(client.closes_within(2s)) << "attempt " << attempt;
  }
}

TEST(HalfClose, IsLeavingWithHttp10) {
  RunningServer server({.prefill = 60s});
  HttpClient client(server.port());
  const std::string body = R"({"prompt":"a"})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 1; }));
  client.finish_sending();
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
}

TEST(Disconnect, DoesNotDisturbOtherRequests) {
  RunningServer server({.answer = std::string(100, 'b'), .step = 1ms});
  HttpClient leaving(server.port()), staying(server.port());
  leaving.send(http_request("POST", "/v1/chat/completions", chat()));
  staying.send(http_request("POST", "/v1/chat/completions", chat()));
  leaving.receive_until("\"b\"");
  leaving.close();
  const auto response = staying.receive();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(sse_events(response.body).size(), 103u);
}

// Kernel buffers take some megabytes before a reader counts as slow.
const std::string kLargeEvents = chat(R"(,"logprobs":true,"top_logprobs":20)");

TEST(SlowReader, IsCutOffWhenTheOutputBufferIsFull) {
  RunningServer server({.answer = std::string(200'000, 'a'), .max_model_len_tokens = 1 << 20},
                       {.limits = {.output_buffer_bytes = {16 << 10, 503, ""}}});
  HttpClient client(server.port());
  client.shrink_receive_buffer();
  client.send(http_request("POST", "/v1/chat/completions", kLargeEvents));
  EXPECT_TRUE(eventually([&] { return server.engine.num_cancelled() == 1; }));
  HttpClient other(server.port());
  EXPECT_NE(other.request("GET", "/metrics").body.find("kvasir_http_aborts_total{cause=\"slow_reader\"} 1"),
            std::string::npos);
}

// The last events repeat the whole text and all its logprobs, four times.
TEST(FastReader, GetsLastEventsOfAnySize) {
  const RunningServer server({.answer = std::string(150, 'a'), .step = 1ms, .max_model_len_tokens = 1024});
  HttpClient client(server.port());
  const ClientResponse response = client.request(
      "POST", "/v1/responses",
      R"({"input":"Hi","stream":true,"top_logprobs":20,"include":["message.output_text.logprobs"]})");
  EXPECT_GT(response.body.size(), 600'000u);
  EXPECT_NE(response.body.find("event: response.completed"), std::string::npos);
  EXPECT_TRUE(response.complete);
}

TEST(SlowReader, IsCutOffWhenItTakesNothingForTooLong) {
  RunningServer server({.answer = std::string(60'000, 'a'), .max_model_len_tokens = 1 << 20},
                       {.limits = {.output_buffer_bytes = {1 << 30, 503, ""}, .write_stall_timeout = 200ms}});
  HttpClient client(server.port());
  client.shrink_receive_buffer();
  client.send(http_request("POST", "/v1/chat/completions", kLargeEvents));
  HttpClient other(server.port());
  EXPECT_TRUE(eventually([&] {
    return other.request("GET", "/metrics").body.find("cause=\"slow_reader\"} 1") != std::string::npos;
  }));
}

TEST(SlowReader, IsCutOffWhenItTakesALittleNowAndThen) {
  RunningServer server({.answer = std::string(60'000, 'a'), .max_model_len_tokens = 1 << 20},
                       {.limits = {.output_buffer_bytes = {1 << 30, 503, ""},
                                   .write_stall_timeout = 1000ms,
                                   .min_bytes_per_s = 1 << 30}});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/chat/completions", kLargeEvents));
  HttpClient other(server.port());
  bool is_cut_off = false;
  for (int i = 0; i < 1000 && !is_cut_off; ++i) {
    client.take_some(64 << 10);
    std::this_thread::sleep_for(20ms);
    is_cut_off = other.request("GET", "/metrics").body.find("cause=\"slow_reader\"} 1") != std::string::npos;
  }
  EXPECT_TRUE(is_cut_off);
}

}  // namespace
}  // namespace kvasir::server::stream_test
