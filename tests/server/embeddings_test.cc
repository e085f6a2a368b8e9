// More inputs than the engine's queue holds: a few are in it at once, and who leaves takes the rest along.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <chrono>
#include <string>
#include <thread>

#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::embeddings_test {
namespace {

using namespace std::chrono_literals;

std::string body_of(int num_inputs) {
  std::string body = R"({"input":["a")";
  for (int i = 1; i < num_inputs; ++i) body += R"(,")" + std::string(1 + i % 5, 'a') + '"';
  return body + "]}";
}

TEST(Embeddings, AreOfMoreInputsThanTheQueueHolds) {
  const RunningServer server({.max_requests = 32});
  const ClientResponse response = HttpClient(server.port()).request("POST", "/v1/embeddings", body_of(200));
  ASSERT_EQ(response.status, 200) << response.body;
  simdjson::dom::parser parser;
  const simdjson::dom::element answer = parser.parse(response.body);
  const auto data = answer["data"].get_array().value();
  ASSERT_EQ(data.size(), 200u);
  std::int64_t index = 0;
  for (const simdjson::dom::element item : data) {
    EXPECT_EQ(item["index"].get_int64().value(), index++);
    EXPECT_EQ(item["embedding"].get_array().value().size(), 2u);
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"].get_int64().value(), 200 / 5 * (1 + 2 + 3 + 4 + 5));
}

TEST(Embeddings, BeginWithAsManyInputsAsTheQueueHasRoomFor) {
  const RunningServer server({.max_requests = 3});
  const ClientResponse response = HttpClient(server.port()).request("POST", "/v1/embeddings", body_of(40));
  EXPECT_EQ(response.status, 200) << response.body;
}

TEST(Embeddings, ThatHaveBegunAreWholeWhenTheServerDrains) {
  RunningServer server({.prefill = 5ms, .max_requests = 1});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/embeddings", body_of(40)));
  while (server.engine.num_running() == 0) std::this_thread::sleep_for(1ms);
  server.server->stop();
  const ClientResponse response = client.receive();
  EXPECT_EQ(response.status, 200) << response.body;
}

TEST(Embeddings, OfTooManyInputsAreRefused) {
  const RunningServer server;
  const ClientResponse response = HttpClient(server.port()).request("POST", "/v1/embeddings", body_of(2049));
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("2049 inputs of one embedding request, the limit is 2048"), std::string::npos)
      << response.body;
}

TEST(Embeddings, EndWithTheClient) {
  const RunningServer server({.prefill = 50ms, .max_requests = 32});
  {
    HttpClient client(server.port());
    client.send(http_request("POST", "/v1/embeddings", body_of(2000)));
    while (server.engine.num_running() == 0) std::this_thread::sleep_for(1ms);
  }
  for (int i = 0; i < 100 && server.engine.num_running() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(server.engine.num_running(), 0);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(server.engine.num_running(), 0) << "nothing of it was left to start";
}

}  // namespace
}  // namespace kvasir::server::embeddings_test
