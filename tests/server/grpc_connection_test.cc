// Connections to the gRPC port, whatever gRPC itself makes of them: floods, silence, ends.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "grpc_client.h"
#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::grpc_test {
namespace {

using namespace std::chrono_literals;

// gRPC has the connection still.
TEST(GrpcConnection, CountsAConnectionThatSentAnUrgentByte) {
  const RunningServer server({}, with_grpc());
  HttpClient urgent(server.server->grpc_port().value()), other(server.port());
  const auto counts = [&](int num_connections) {
    const std::string line = "kvasir_http_connections " + std::to_string(num_connections) + "\n";
    return other.request("GET", "/metrics").body.find(line) != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return counts(2); }));
  for (int i = 0; i < 10; ++i) {
    urgent.send_urgently('!');
    std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(counts(2)) << i;
  }
  urgent.close();
  EXPECT_TRUE(eventually([&] { return counts(1); }));
}

std::string http2_frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  std::string bytes;
  const auto append = [&](std::uint32_t number, int num_bytes) {
    for (int i = num_bytes - 1; i >= 0; --i) bytes += static_cast<char>(number >> (8 * i));
  };
  append(static_cast<std::uint32_t>(payload.size()), 3);
  append(type, 1);
  append(flags, 1);
  append(stream, 4);
  return bytes + payload;
}

// A client's first bytes: the preface, empty settings, and leave to begin.
std::string http2_greeting() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, "") + http2_frame(4, 1, 0, "");
}

// Begins a call of Generate, without its message.
std::string begun_call(std::uint32_t stream) {
  std::string head = "\x83\x86";  // POST, http (RFC 7541, A)
  for (const auto& [name, value] : {std::pair<std::string, std::string>{":path", "/kvasir.v1.Kvasir/Generate"},
                                    {":authority", "t"},
                                    {"content-type", "application/grpc"},
                                    {"te", "trailers"}}) {
    head += '\0';
    head += static_cast<char>(name.size()) + name;
    head += static_cast<char>(value.size()) + value;
  }
  return http2_frame(1, 4, stream, head);
}

std::string begun_and_reset(std::uint32_t stream) {
  return begun_call(stream) + http2_frame(3, 0, stream, std::string("\0\0\0\x08", 4));
}

// The end of a GOAWAY with ENHANCE_YOUR_CALM.
const std::string kCalm("\0\0\0\x0b", 4);

bool counts_calmed(const RunningServer& server, int count) {
  return metrics_of(server).find("kvasir_grpc_connections_calmed_total " + std::to_string(count) + "\n") !=
         std::string::npos;
}

TEST(GrpcConnection, ClosesAConnectionThatResetsManyCalls) {
  ServerConfig config = with_grpc();
  config.limits.grpc_resets.max = 50;
  const RunningServer server({}, config);
  HttpClient flood(server.server->grpc_port().value()), calm(server.server->grpc_port().value());
  std::string calls = http2_greeting(), few = http2_greeting();
  for (std::uint32_t i = 0; i < 1000; ++i) calls += begun_and_reset(2 * i + 1);
  for (std::uint32_t i = 0; i < 40; ++i) few += begun_and_reset(2 * i + 1);
  calm.send(few);
  flood.send(calls);
  EXPECT_NE(flood.receive_until(kCalm).find(kCalm), std::string::npos);
  EXPECT_TRUE(flood.closes_within(5s));
  EXPECT_FALSE(calm.closes_within(200ms));
  EXPECT_TRUE(counts_calmed(server, 1));
  Client other(server);
  EXPECT_TRUE(Generated(other, prompt()).status.ok());
}

TEST(GrpcConnection, EndsACallWhoseMessageDoesNotCome) {
  ServerConfig config = with_grpc();
  config.limits.body_timeout = 300ms;
  const RunningServer server({}, config);
  const auto end_of = [](char stream) { return std::string("\x01\x05\0\0\0", 5) + stream; };  // HEADERS, the last
  HttpClient slow(server.server->grpc_port().value());
  slow.send(http2_greeting() + begun_call(1));
  EXPECT_NE(slow.receive_until(end_of(1)).find(end_of(1)), std::string::npos);
  // A message that is cut off; the connection goes on.
  slow.send(begun_call(3) + http2_frame(0, 0, 3, std::string("\0\0\0\0\x09h", 6)));
  EXPECT_NE(slow.receive_until(end_of(3)).find(end_of(3)), std::string::npos);
  EXPECT_FALSE(slow.closes_within(200ms));
  EXPECT_TRUE(counts_calmed(server, 0));
  // A frame that does not end keeps calls from ending.
  slow.send(begun_call(5) + http2_frame(0, 0, 5, std::string(100, 'x')).substr(0, 50));
  EXPECT_TRUE(slow.closes_within(5s));
  Client other(server);
  EXPECT_TRUE(Generated(other, prompt()).status.ok());
}

TEST(GrpcConnection, ClosesAConnectionThatSendsManyEmptyFrames) {
  const RunningServer server({}, with_grpc());
  const std::vector<std::string> frames = {http2_frame(6, 0, 0, "12345678"), http2_frame(4, 0, 0, ""),
                                           http2_frame(0, 0, 1, ""), http2_frame(9, 0, 1, "")};
  int num_closed = 0;
  for (const std::string& frame : frames) {
    SCOPED_TRACE(num_closed);
    HttpClient flood(server.server->grpc_port().value());
    std::string bytes = http2_greeting();
    for (int i = 0; i < 5000; ++i) bytes += frame;
    flood.send(bytes);
    EXPECT_TRUE(flood.closes_within(5s));
    ++num_closed;
  }
  EXPECT_FALSE(counts_calmed(server, 0));
}

TEST(GrpcConnection, ForgetsAConnectionThatIsOver) {
  const RunningServer server({.answer = "a"}, with_grpc());
  HttpClient watching(server.port());  // which counts as well
  const auto num_open = [&] {
    const std::string metrics = watching.request("GET", "/metrics").body;
    const std::string name = "\nkvasir_http_connections ";
    return std::stoi(metrics.substr(metrics.find(name) + name.size())) - 1;
  };
  {
    Client first(server), second(server);
    ASSERT_TRUE(Generated(first, prompt()).status.ok());
    ASSERT_TRUE(Generated(second, prompt()).status.ok());
    EXPECT_TRUE(eventually([&] { return num_open() == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return num_open() == 0; }));
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket socket(io);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), server.server->grpc_port().value()});
  EXPECT_TRUE(eventually([&] { return num_open() == 1; }));
  socket.close();
  EXPECT_TRUE(eventually([&] { return num_open() == 0; }));
}

TEST(GrpcConnection, ClosesAConnectionTooMany) {
  const RunningServer server({.answer = "a"},
                             with_grpc({.limits = {.connections = {1, 503, "connections"}}}));
  Client first(server), second(server);
  ASSERT_TRUE(Generated(first, prompt()).status.ok());
  EXPECT_EQ(Generated(second, prompt()).status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace kvasir::server::grpc_test
