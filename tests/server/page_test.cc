// The page at "/": one small file that asks nobody but its own server, and in which only what was built in
// runs.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::page_test {
namespace {

TEST(Page, IsOneSmallFileWithoutAnythingFromElsewhere) {
  const RunningServer server;
  const ClientResponse page = HttpClient(server.port()).request("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("content-type"), "text/html; charset=utf-8");
  EXPECT_LE(page.body.size(), 200u << 10);
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.body.ends_with("</html>\n"));
  const std::regex loads(R"re((src=|@import|url\(|<link[^>]*href="(?!data:)))re");
  EXPECT_FALSE(std::regex_search(page.body, loads));
  // Every part has come in whole.
  EXPECT_FALSE(std::regex_search(page.body, std::regex("@[a-z]+[.](js|css)@")));
  for (const char* part :
       {"--ground:", "function renderMarkdown", "function showKv", "startTheme();\nstartChat();"}) {
    EXPECT_NE(page.body.find(part), std::string::npos) << part;
  }
}

TEST(Page, ForbidsTheBrowserEverythingElse) {
  const RunningServer server;
  const ClientResponse page = HttpClient(server.port()).request("GET", "/");
  const std::string policy = page.header("content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'sha256-")) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
  EXPECT_NE(policy.find("connect-src 'self'"), std::string::npos) << policy;
  EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos) << policy;
  EXPECT_EQ(page.header("x-content-type-options"), "nosniff");
}

}  // namespace
}  // namespace kvasir::server::page_test
