// Pages of other sites, and names that others let point here, do not get at a server on loopback.
#include "server/http/host_check.h"

#include <gtest/gtest.h>

#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::host_check_test {
namespace {

http::Cors cors_of(std::vector<std::string> origins) {
  return http::Cors(http::parse_origin_patterns(origins).value());
}

int status_of(const http::HostCheck& check, std::vector<http::Header> headers) {
  const ApiStatus status = check.check(
      {.method = "POST", .path = "/v1/completions", .headers = std::move(headers)});
  return status ? 200 : status.error().status;
}

TEST(HostCheck, TakesLoopbackNamesAndThoseAllowed) {
  const http::Cors cors = cors_of({"none"});
  const http::HostCheck check({"kvasir.example"}, cors);
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1:8080", "127.1.2.3", "[::1]:8080",
                           "[::1]", "kvasir.example", "Kvasir.Example:443", "localhost.",
                           "app.localhost:3000", "host.docker.internal:8080", "host.containers.internal",
                           "0.0.0.0:8080", "10.0.0.1", "192.168.1.5:8080", "[fe80::1]", "[::]:8080"}) {
    EXPECT_EQ(status_of(check, {{"Host", host}}), 200) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", ".localhost", "evil.docker.internal",
                           "evillocalhost", "10.0.0.1.evil.example", "10.0.0", "0", "", "[", ":8080",
                           "localhost:80@evil.example", "[::1]evil.example"}) {
    EXPECT_EQ(status_of(check, {{"Host", host}}), 403) << host;
  }
  EXPECT_EQ(status_of(check, {}), 200);  // HTTP/1.0; browsers say
}

TEST(HostCheck, TakesItsOwnPagesAndThoseThatCorsAllows) {
  const http::Cors none = cors_of({"none"}), one = cors_of({"none", "https://chat.example"}),
                   all = cors_of({"none", "*"}), usual = cors_of({});
  const http::HostCheck closed({}, none), open_to_one({}, one), open_to_all({}, all),
      open_as_usual({}, usual);
  const auto with = [](const char* origin) {
    return std::vector<http::Header>{{"Host", "localhost:8080"}, {"Origin", origin}};
  };
  EXPECT_EQ(status_of(closed, with("http://localhost:8080")), 200);
  for (const char* origin : {"http://localhost:3000", "https://chat.example", "null", "", "localhost:8080"}) {
    EXPECT_EQ(status_of(closed, with(origin)), 403) << origin;
    EXPECT_EQ(status_of(open_to_all, with(origin)), 200) << origin;
  }
  EXPECT_EQ(status_of(open_to_one, with("https://chat.example")), 200);
  EXPECT_EQ(status_of(open_to_one, with("https://evil.example")), 403);
  EXPECT_EQ(status_of(open_as_usual, with("app://obsidian.md")), 200);
  EXPECT_EQ(status_of(open_as_usual, with("https://evil.example")), 403);
}

TEST(HostCheck, IsForServersOnLoopback) {
  const http::Cors cors = cors_of({"none"});
  http::HostCheck check({}, cors);
  check.set_loopback(false);
  EXPECT_EQ(status_of(check, {{"Host", "kvasir.example"}, {"Origin", "https://evil.example"}}), 200);
}

TEST(HostCheck, HoldsForEveryPathOfAServer) {
  const RunningServer server;
  HttpClient client(server.port());
  client.send("GET /health/live HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  const ClientResponse answer = client.receive();
  EXPECT_EQ(answer.status, 403);
  EXPECT_NE(answer.body.find(R"("code":"forbidden")"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace kvasir::server::host_check_test
