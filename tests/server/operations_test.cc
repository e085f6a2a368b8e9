// The requests that run now, as the page asks: all for operators, their own for tenants, texts for nobody.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_file.h"

namespace kvasir::server::operations_test {
namespace {

using namespace std::chrono_literals;

// Begins a stream under a key and returns once its first event is there.
void begin_stream(HttpClient& client, const std::string& key) {
  client.send(http_request("POST", "/v1/completions",
                           R"({"prompt":"secret words","max_tokens":200,"stream":true,"ignore_eos":true})",
                           {"Authorization: Bearer " + key}));
  EXPECT_NE(client.receive_until("data: ").find("data: "), std::string::npos);
}

std::string operations_with(const RunningServer& server, const std::vector<std::string>& headers = {}) {
  const ClientResponse answer = HttpClient(server.port()).request("GET", "/v1/operations", {}, headers);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("cache-control"), "no-store");
  return answer.body;
}

TEST(Operations, ShowAnIdleServer) {
  const RunningServer server;
  const std::string body = operations_with(server);
  EXPECT_NE(body.find(R"("requests":[],"running":0,"waiting":0)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("map":[{"owner":"sequence","format":"f16","bytes":4096}])"), std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("refused":{"queue_full":0,"too_late":0,"expired":0,"rate_limit":0})"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("time_to_first_token":{"bounds_s":[0.001,)"), std::string::npos) << body;
}

TEST(Operations, AreOnesOwnUnlessOneIsAnOperator) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("kvasir-operations-" + std::to_string(::getpid()))).string();
  const std::string created = "2026-11-23T00:00:00Z";
  ASSERT_TRUE(auth::write_key_file(
      path, {{.name = "ann", .hash = auth::hash_of("kv-ann"), .created = created},
             {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = created},
             {.name = "ops", .hash = auth::hash_of("kv-ops"), .created = created, .is_operator = true}}));
  ServerConfig config;
  config.api_keys_file = path;
  const RunningServer server({.step = 50ms}, config);
  HttpClient ann(server.port()), bob(server.port());
  begin_stream(ann, "kv-ann");
  begin_stream(bob, "kv-bob");
  const auto seen_by = [&](const std::string& key) {
    return operations_with(server, {"Authorization: Bearer " + key});
  };
  const std::string of_ann = seen_by("kv-ann"), of_operator = seen_by("kv-ops");
  EXPECT_NE(of_ann.find(R"("tenant":"ann")"), std::string::npos) << of_ann;
  EXPECT_EQ(of_ann.find("bob"), std::string::npos) << of_ann;
  EXPECT_NE(of_operator.find(R"("tenant":"ann")"), std::string::npos) << of_operator;
  EXPECT_NE(of_operator.find(R"("tenant":"bob")"), std::string::npos) << of_operator;
  EXPECT_EQ(of_operator.find("secret"), std::string::npos) << of_operator;
  EXPECT_EQ(HttpClient(server.port()).request("GET", "/v1/operations").status, 401);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace kvasir::server::operations_test
