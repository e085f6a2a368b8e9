// The memory of all requests together is bounded, and comes back.
#include "server/request_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "eventually.h"
#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_file.h"

namespace kvasir::server::request_memory_test {
namespace {

TEST(RequestMemory, SharesAreBoundedTogetherAndComeBack) {
  RequestMemory memory(100);
  {
    RequestMemory::Share first(memory), second(memory);
    EXPECT_TRUE(first.resize(60).has_value());
    EXPECT_EQ(second.resize(41).error().status, 503);
    EXPECT_EQ(second.resize(41, 60).error().status, 413) << "what it has elsewhere counts";
    EXPECT_TRUE(second.resize(40).has_value());
    EXPECT_TRUE(first.resize(50).has_value());
    second.set(80);  // is there anyway
    EXPECT_EQ(memory.used_bytes(), 130);
    EXPECT_FALSE(first.resize(51).has_value());
    EXPECT_TRUE(first.resize(10).has_value()) << "less is always possible";
  }
  EXPECT_EQ(memory.used_bytes(), 0);
  RequestMemory unlimited(0);
  EXPECT_TRUE(RequestMemory::Share(unlimited).resize(1'000'000'000'000).has_value());
}

TEST(RequestMemory, ATenantLeavesRoomForOthers) {
  RequestMemory memory(100);
  RequestMemory::Share large(memory, "a");
  EXPECT_TRUE(large.resize(90).has_value()) << "one request may have what there is";
  EXPECT_TRUE(large.resize(40).has_value());
  RequestMemory::Share more(memory, "a"), other(memory, "b"), third(memory);
  EXPECT_TRUE(more.resize(10).has_value());
  const ApiStatus refused = more.resize(11);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().status, 503);
  EXPECT_EQ(
      refused.error().message,
      "the requests of a have 50 of the 100 bytes that there are for all (--request-memory), and the rest is left for others");
  EXPECT_TRUE(other.resize(30).has_value());
  EXPECT_FALSE(more.resize(11).has_value());
  third.set(5);
  third.belong_to("b");
  EXPECT_FALSE(other.resize(31).has_value()) << "36 of b and 14 left";
  third.belong_to("");
  EXPECT_TRUE(other.resize(31).has_value()) << "nothing else of b";
  other.set(0);
  large.set(0);
  EXPECT_TRUE(more.resize(60).has_value());
}

std::string completion(std::size_t prompt_bytes, const std::string& more = "") {
  return R"({"prompt":")" + std::string(prompt_bytes, 'x') + R"(","max_tokens":1)" + more + "}";
}

TEST(RequestMemory, RefusesWhatDoesNotFitAndGoesOn) {
  ServerConfig config;
  config.request_memory_bytes = 1 << 20;
  const RunningServer server({.max_model_len_tokens = 1'000'000}, config);
  for (int i = 0; i < 3; ++i) {
    HttpClient client(server.port());
    const ClientResponse refused = client.request("POST", "/v1/completions", completion(300'000));
    EXPECT_EQ(refused.status, 413) << "it is no use to come again";
    EXPECT_NE(refused.body.find("the limit for all together is 1048576"), std::string::npos) << refused.body;
    HttpClient other(server.port());
    for (int j = 0; j < 8; ++j) {
      const ClientResponse answer = other.request("POST", "/v1/completions", completion(90'000));
      EXPECT_EQ(answer.status, 200) << "in turn: " << answer.body;
    }
  }
}

// Six times that much is needed of a whole body only, and four bytes for each token, which is a byte here.
TEST(RequestMemory, HalfABodyTakesWhatHasCome) {
  ServerConfig config;
  config.request_memory_bytes = 1 << 20;
  const RunningServer server({.max_model_len_tokens = 1'000'000}, config);
  HttpClient first(server.port()), second(server.port());
  const std::string request = http_request("POST", "/v1/completions", completion(90'000));
  for (HttpClient* client : {&first, &second}) client->send(request.substr(0, 80'000));
  HttpClient other(server.port());
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(other.request("POST", "/v1/completions", completion(40'000)).status, 200);
  }
  first.send(request.substr(80'000));
  const ClientResponse refused = first.receive();
  EXPECT_EQ(refused.status, 503) << "10 x 90'000 and 80'000 and what connections have are too much";
  EXPECT_NE(refused.body.find(R"("code":"out_of_request_memory")"), std::string::npos) << refused.body;
  EXPECT_FALSE(refused.header("retry-after").empty());
  second.send(request.substr(80'000));
  EXPECT_EQ(second.receive().status, 200);
}

class RequestMemoryOfTenants : public testing::Test {
 protected:
  RequestMemoryOfTenants() {
    EXPECT_TRUE(auth::write_key_file(
        path_, {{.name = "ann", .hash = auth::hash_of("kv-ann"), .created = "2026-11-25T00:00:00Z"},
                {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-25T00:00:00Z"},
                {.name = "ops",
                 .hash = auth::hash_of("kv-ops"),
                 .created = "2026-11-25T00:00:00Z",
                 .is_operator = true}}));
  }
  ~RequestMemoryOfTenants() override { std::filesystem::remove(path_); }
  ServerConfig config() const {
    ServerConfig config;
    config.request_memory_bytes = 1 << 20;
    config.api_keys_file = path_;
    return config;
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("kvasir-memory-" + std::to_string(::getpid()))).string();
  const std::string ann_ = "Authorization: Bearer kv-ann", bob_ = "Authorization: Bearer kv-bob",
                    operator_ = "Authorization: Bearer kv-ops";
};

// A proxy sends the requests of many over one connection.
TEST_F(RequestMemoryOfTenants, KnowsNothingOfWhoAskedBefore) {
  const RunningServer server({.max_model_len_tokens = 1'000'000}, config());
  HttpClient shared(server.port()), large(server.port());
  EXPECT_EQ(shared.request("POST", "/v1/completions", completion(10), {ann_}).status, 200);
  large.send(http_request("POST", "/v1/completions", completion(700'000), {ann_}).substr(0, 600'000));
  HttpClient other(server.port());
  EXPECT_TRUE(eventually([&] {
    const std::string metrics = other.request("GET", "/metrics", {}, {operator_}).body;
    const std::string_view name = "\nkvasir_request_memory_bytes ";
    const auto at = metrics.find(name);
    return at != std::string::npos && std::stod(metrics.substr(at + name.size())) > 590'000;
  }));
  EXPECT_EQ(other.request("POST", "/v1/completions", completion(20'000), {ann_}).status, 503);
  EXPECT_EQ(shared.request("POST", "/v1/completions", completion(20'000), {bob_}).status, 200);
}

TEST_F(RequestMemoryOfTenants, AnOpenWebSocketTakesNothingFromTheRequestsOfItsKey) {
  const RunningServer server({.max_model_len_tokens = 1'000'000}, config());
  HttpClient channel(server.port()), large(server.port());
  channel.send(http_request("GET", "/v1/stream", {},
                            {ann_, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}));
  EXPECT_FALSE(channel.receive_until("101 ").empty());
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(large.request("POST", "/v1/completions", completion(90'000), {ann_}).status, 200) << i;
  }
}

TEST(RequestMemory, ListsTakeMoreThanText) {
  EXPECT_EQ(body_memory_bytes(R"({"prompt":"aaaa"})"), 6 * 17);
  EXPECT_EQ(body_memory_bytes(R"({"prompt":[1,2,3]})"), 6 * 18 + 2 * 24);
}

TEST(RequestMemory, CountsTheTextOfTokens) {
  ServerConfig config;
  config.request_memory_bytes = 1 << 20;
  const RunningServer server({}, config);
  std::string tokens = R"({"tokens":[258)";
  for (int i = 0; i < 20'000; ++i) tokens += ",258";  // "<|im_end|>"
  HttpClient client(server.port());
  const ClientResponse refused = client.request("POST", "/detokenize", tokens + "]}");
  EXPECT_EQ(refused.status, 413) << refused.body;
  EXPECT_EQ(HttpClient(server.port()).request("POST", "/detokenize", R"({"tokens":[258]})").status, 200);
}

TEST(RequestMemory, CountsThePromptOfEachChoice) {
  ServerConfig config;
  config.request_memory_bytes = 1 << 20;
  const RunningServer server({.max_model_len_tokens = 100'000}, config);
  HttpClient client(server.port());
  const auto status_of = [&](const std::string& more) {
    return client.request("POST", "/v1/completions", completion(50'000, more)).status;
  };
  EXPECT_EQ(status_of(R"(,"stream":true)"), 200);
  EXPECT_EQ(status_of(R"(,"stream":true,"n":4)"), 413);
}

TEST(RequestMemory, CountsAnswersThatComeInOnePiece) {
  ServerConfig config;
  config.request_memory_bytes = 1 << 20;
  const RunningServer server({.max_model_len_tokens = 4096}, config);
  HttpClient client(server.port());
  const std::string much = R"(,"max_tokens":1000,"logprobs":5,"n":8)";
  // More than there is at any time, so it is no use to come again.
  const ClientResponse refused = client.request("POST", "/v1/completions", R"({"prompt":"x")" + much + "}");
  EXPECT_EQ(refused.status, 413);
  EXPECT_NE(refused.body.find("the limit for all together is 1048576"), std::string::npos) << refused.body;
  EXPECT_EQ(
      client.request("POST", "/v1/completions", R"({"prompt":"x")" + much + R"(,"stream":true})").status,
      200);
  EXPECT_EQ(client.request("POST", "/v1/completions", completion(10)).status, 200);
}

}  // namespace
}  // namespace kvasir::server::request_memory_test
