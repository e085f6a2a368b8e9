// WebSockets as a client sees them; tests/clients sends whole cases over one.
#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "eventually.h"
#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::channel_test {
namespace {

using namespace std::chrono_literals;
namespace websocket = boost::beast::websocket;
using boost::asio::ip::tcp;

constexpr int kReceiveSeconds = 5;

class Client {
 public:
  explicit Client(std::uint16_t port) {
    stream_.next_layer().connect({boost::asio::ip::make_address("127.0.0.1"), port});
    timeval limit{.tv_sec = kReceiveSeconds, .tv_usec = 0};
    setsockopt(stream_.next_layer().native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    stream_.handshake("localhost", "/v1/stream");
  }

  void send(const std::string& text) { stream_.write(boost::asio::buffer(text)); }
  void ask(const std::string& id, const std::string& more = {}) {
    send(R"({"id":")" + id + R"(","path":"/v1/completions","body":{"prompt":"Hi","stream":true)" + more +
         "}}");
  }
  // Empty when none comes.
  std::string receive() {
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    stream_.read(buffer, error);
    return error ? std::string() : boost::beast::buffers_to_string(buffer.cdata());
  }
  std::string receive_until(const std::string& part) {
    std::string message;
    do {
      message = receive();
    } while (!message.empty() && message.find(part) == std::string::npos);
    return message;
  }
  websocket::close_reason reason() const { return stream_.reason(); }
  tcp::socket& socket() { return stream_.next_layer(); }
  websocket::stream<tcp::socket>& stream() { return stream_; }

 private:
  boost::asio::io_context io_;
  websocket::stream<tcp::socket> stream_{io_};
};

TEST(Channel, SendsTheHeadTheEventsAndTheEnd) {
  const RunningServer server({.answer = "a"});
  Client client(server.port());
  client.ask("x");
  EXPECT_TRUE(client.receive().starts_with(R"({"id":"x","status":200,"headers":{"X-Request-Id":"req_)"));
  std::string event = client.receive();
  EXPECT_TRUE(event.starts_with(R"({"id":"x","event":{"id":"cmpl-)")) << event;
  EXPECT_NE(event.find(R"("text":"a")"), std::string::npos) << event;
  event = client.receive();
  EXPECT_NE(event.find(R"("finish_reason":"stop")"), std::string::npos) << event;
  EXPECT_EQ(client.receive(), R"({"id":"x","end":"complete"})");
}

TEST(Channel, GivesAnAnswerInOnePieceWithItsStatus) {
  const RunningServer server;
  Client client(server.port());
  client.send(R"({"id":"x","path":"/tokenize","body":{"prompt":"Hi"}})");
  std::string answer = client.receive();
  EXPECT_TRUE(answer.starts_with(R"({"id":"x","status":200,)")) << answer;
  EXPECT_NE(answer.find(R"("body":{"count":2,)"), std::string::npos) << answer;
  client.send(R"({"id":"x","path":"/v1/models","body":{}})");
  answer = client.receive();
  EXPECT_TRUE(answer.starts_with(R"({"id":"x","status":405,)")) << answer;
  client.send(R"({"id":"x","path":"/v1/messages","body":{}})");
  answer = client.receive();
  EXPECT_NE(answer.find(R"("body":{"type":"error",)"), std::string::npos) << answer;
}

TEST(Channel, SaysThatAnAnswerWasCutToTheContext) {
  const RunningServer server;
  Client client(server.port());
  client.ask("x", R"(,"max_tokens":32000)");
  const std::string head = client.receive();
  EXPECT_TRUE(head.starts_with(R"({"id":"x","status":200)")) << head;
  EXPECT_TRUE(head.contains(R"("X-Kvasir-Warning":"max_tokens: 32000 was cut to 254, what the context of 256 )"))
      << head;
  EXPECT_EQ(server.engine.last_request().sampling.max_tokens, 254);
}

TEST(Channel, AnswersManyAtATime) {
  const RunningServer server({.answer = "abcd", .step = 5ms});
  Client client(server.port());
  for (const char* id : {"1", "2", "3", "4"}) client.ask(id);
  std::set<std::string> begun, ended;
  bool was_mixed = false;
  while (ended.size() < 4) {
    const std::string message = client.receive();
    ASSERT_FALSE(message.empty());
    const std::string id = message.substr(7, 1);
    if (message.find(R"("end":"complete")") != std::string::npos) {
      ended.insert(id);
    } else {
      begun.insert(id);
    }
    was_mixed |= begun.size() > 1 && ended.empty();
  }
  EXPECT_TRUE(was_mixed);
}

TEST(Channel, CancelsOneAndGoesOnWithTheOthers) {
  const RunningServer server({.answer = std::string(200, 'a'), .step = 5ms});
  Client client(server.port());
  client.ask("gone");
  client.ask("stays", R"(,"max_tokens":60)");
  client.receive_until(R"("id":"gone","event")");
  client.send(R"({"id":"gone","cancel":true})");
  EXPECT_EQ(client.receive_until(R"("id":"gone","end")"), R"({"id":"gone","end":"cancelled"})");
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() <= 1; }));
  EXPECT_EQ(server.engine.num_cancelled(), 1);
  EXPECT_EQ(client.receive_until(R"("end":)"), R"({"id":"stays","end":"complete"})");
  client.send(R"({"id":"gone","cancel":true})");  // is over, which is no fault
  client.send(R"({"id":"gone","path":"/tokenize","body":{"prompt":"Hi"}})");
  EXPECT_TRUE(client.receive().starts_with(R"({"id":"gone","status":200,)"));
  const auto metrics = HttpClient(server.port()).request("GET", "/metrics").body;
  EXPECT_NE(metrics.find(R"(kvasir_http_aborts_total{cause="cancelled"} 1)"), std::string::npos);
}

TEST(Channel, EndsAllRequestsOfAClientThatLeaves) {
  const RunningServer server({.answer = std::string(200, 'a'), .step = 10ms});
  {
    Client client(server.port());
    client.ask("1");
    client.ask("2");
    client.receive_until(R"("id":"2","event")");
  }
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
  EXPECT_EQ(server.engine.num_cancelled(), 2);
}

TEST(Channel, TellsOfAFailureAndGoesOn) {
  const RunningServer server({.fail_after_tokens = 2});
  Client client(server.port());
  client.ask("x");
  EXPECT_NE(client.receive_until(R"("error")").find("the fake engine was told to fail"), std::string::npos);
  EXPECT_EQ(client.receive(), R"({"id":"x","end":"failed"})");
}

TEST(Channel, RefusesWhatIsNoRequest) {
  const RunningServer server({.answer = std::string(200, 'a'), .step = 5ms});
  Client client(server.port());
  client.send("hello");
  EXPECT_TRUE(client.receive().starts_with(R"({"id":null,"status":400,)"));
  client.ask("x");
  client.receive_until(R"("id":"x","event")");
  client.ask("x");
  EXPECT_NE(client.receive_until(R"("id":null)").find(R"("code":"id_in_use")"), std::string::npos);
  client.stream().binary(true);
  client.send("binary");
  client.receive_until("nothing comes");
  EXPECT_EQ(client.reason().code, websocket::close_code::unknown_data);
}

TEST(Channel, BoundsTheRequestsOfOneConnection) {
  const RunningServer server({.answer = "a", .prefill = 300ms, .max_requests = 100},
                             {.limits = {.channel_requests = {2, 429, "at a time"}}});
  Client client(server.port());
  for (const char* id : {"1", "2", "3"}) client.ask(id);
  const std::string refusal = client.receive();
  EXPECT_TRUE(refusal.starts_with(R"({"id":"3","status":429,"headers":{"Retry-After":)")) << refusal;
  EXPECT_NE(refusal.find("3 at a time, the limit is 2"), std::string::npos) << refusal;
}

TEST(Channel, ClosesAfterAMessageBeyondTheBodysLimit) {
  const RunningServer server({}, {.limits = {.body_bytes = {1000, 413, "bytes"}}});
  Client client(server.port());
  client.send(R"({"id":"x","path":"/tokenize","body":{"prompt":")" + std::string(1000, 'a') + R"("}})");
  EXPECT_EQ(client.receive(), "");
  EXPECT_EQ(client.reason().code, websocket::close_code::too_big);
}

// Although it is never read whole, and others are being answered.
TEST(Channel, SaysWhyBeforeItClosesOnAMessageThatIsTooLong) {
  const RunningServer server({.answer = std::string(2000, 'a'), .step = 2ms});
  Client client(server.port());
  client.ask("x", R"(,"max_tokens":2000)");
  EXPECT_FALSE(client.receive().empty());
  const std::string message(std::size_t{9} << 20, ' ');
  boost::system::error_code error;
  client.stream().write(boost::asio::buffer(message), error);
  EXPECT_FALSE(error) << error.message();
  while (!client.receive().empty()) continue;
  EXPECT_EQ(client.reason().code, websocket::close_code::too_big);
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
}

TEST(Channel, SendsAnAnswerInOnePieceBesideAStream) {
  const RunningServer server({.answer = std::string(400, 'a'), .step = 1ms, .max_model_len_tokens = 1024},
                             {.limits = {.output_buffer_bytes = {20'000, 503, "waiting"}}});
  Client client(server.port());
  client.ask("stream", R"(,"max_tokens":400)");
  for (int i = 0; i < 5; ++i) {
    const std::string id = std::to_string(i);
    client.send(R"({"id":")" + id + R"(","path":"/v1/chat/completions","body":{"max_tokens":40,)" +
                R"("messages":[{"role":"user","content":"Hi"}],"logprobs":true,"top_logprobs":20}})");
  }
  int num_whole = 0;
  for (std::string message = client.receive(); !message.empty(); message = client.receive()) {
    num_whole += message.size() > 20'000;
    if (message.find(R"("end":"complete")") != std::string::npos) break;
  }
  EXPECT_EQ(num_whole, 5);
  EXPECT_EQ(server.engine.num_cancelled(), 0);
}

TEST(Channel, ClosesWhenTheRestOfAMessageDoesNotCome) {
  const RunningServer server({}, {.limits = {.body_timeout = 300ms}});
  Client client(server.port());
  client.stream().write_some(false, boost::asio::buffer(std::string(20'000, ' ')));
  EXPECT_TRUE(client.receive().empty());
  HttpClient other(server.port());
  EXPECT_TRUE(eventually([&] {
    return other.request("GET", "/metrics").body.find("kvasir_http_connections 1\n") != std::string::npos;
  }));
}

TEST(Channel, TakesWhatComesWithAPipelinedUpgrade) {
  const RunningServer server;
  const std::string upgrade =
      http_request("GET", "/v1/stream", {},
                   {"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="});
  const std::string message = R"({"id":"x","path":"/nowhere","body":{}})";
  const std::string frame =
      std::string("\x81") + static_cast<char>(0x80 | message.size()) + std::string(4, '\0') + message;
  for (int round = 0; round < 30; ++round) {
    HttpClient client(server.port());
    std::string behind = frame;
    if (round % 2 == 0) {
      client.send(http_request("GET", "/health/live") + upgrade);
    } else {
      client.send(http_request("GET", "/health/live") + upgrade + std::exchange(behind, {}));
    }
    ASSERT_EQ(client.receive().status, 200);
    client.send(behind);
    EXPECT_NE(client.receive_until("404").find(R"({"id":"x","status":404)"), std::string::npos) << round;
  }
}

TEST(Channel, CutsOffAReaderWhoTakesNothing) {
  const RunningServer server({.answer = std::string(100'000, 'a'), .max_model_len_tokens = 1 << 20},
                             {.limits = {.output_buffer_bytes = {20'000, 503, "waiting"}}});
  Client client(server.port());
  client.ask("x", R"(,"max_tokens":100000)");
  EXPECT_TRUE(eventually([&] { return server.engine.num_cancelled() == 1; }));
  const auto metrics = HttpClient(server.port()).request("GET", "/metrics").body;
  EXPECT_NE(metrics.find(R"(cause="slow_reader"} 1)"), std::string::npos);
}

TEST(Channel, CutsOffAReaderWhoTakesNothingForTooLong) {
  const RunningServer server(
      {.answer = std::string(100'000, 'a'), .max_model_len_tokens = 1 << 20},
      {.limits = {.output_buffer_bytes = {1 << 30, 503, "waiting"}, .write_stall_timeout = 200ms}});
  Client client(server.port());
  client.ask("x", R"(,"max_tokens":100000,"logprobs":5)");
  HttpClient other(server.port());
  EXPECT_TRUE(eventually([&] {
    return other.request("GET", "/metrics").body.find(R"(cause="slow_reader"} 1)") != std::string::npos;
  }));
}

TEST(Channel, BeginsOnlyWithAnUpgradeFromItsOwnPages) {
  const RunningServer server;
  HttpClient client(server.port());
  const auto plain = client.request("GET", "/v1/stream");
  EXPECT_EQ(plain.status, 426);
  EXPECT_EQ(plain.header("upgrade"), "websocket");
  const std::vector<std::string> upgrade = {"Connection: Upgrade", "Upgrade: websocket",
                                            "Sec-WebSocket-Version: 13",
                                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="};
  for (const char* other : {"Sec-WebSocket-Version: 12", "Sec-WebSocket-Key: short"}) {
    auto wrong = upgrade;
    wrong[std::string_view(other).starts_with("Sec-WebSocket-V") ? 2 : 3] = other;
    const auto refused = client.request("GET", "/v1/stream", {}, wrong);
    EXPECT_EQ(refused.status, 426) << other;
    EXPECT_EQ(refused.header("sec-websocket-version"), "13");
    EXPECT_NE(refused.body.find(R"("code":"upgrade_required")"), std::string::npos) << refused.body;
  }
  auto headers = upgrade;
  headers.push_back("Origin: http://elsewhere.example");
  EXPECT_EQ(client.request("GET", "/v1/stream", {}, headers).status, 403);
  headers.back() = "Origin: http://test";
  client.send(http_request("GET", "/v1/stream", {}, headers));
  EXPECT_TRUE(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
}

}  // namespace
}  // namespace kvasir::server::channel_test
