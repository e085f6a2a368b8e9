#include "server/http/router.h"

#include <gtest/gtest.h>

namespace kvasir::server::router_test {
namespace {

http::Router router(std::string base_path = {}) {
  std::vector<http::Route> routes;
  for (const char* pattern : {"/", "/health", "/v1/models", "/v1/models/*", "/v1/chat/completions", "/tokenize"})
    routes.push_back({"GET", pattern, {}});
  return http::Router(std::move(routes), std::move(base_path));
}

TEST(Router, BringsPathsToTheirUsualForm) {
  const http::Router plain = router();
  EXPECT_EQ(plain.canonical_path("/v1/models"), "/v1/models");
  EXPECT_EQ(plain.canonical_path("/v1/models/"), "/v1/models");
  EXPECT_EQ(plain.canonical_path("/v1/models/a/b"), "/v1/models/a/b");
  EXPECT_EQ(plain.canonical_path("/models"), "/v1/models");
  EXPECT_EQ(plain.canonical_path("/v1/v1/chat/completions/"), "/v1/chat/completions");
  EXPECT_EQ(plain.canonical_path("//chat///completions"), "/v1/chat/completions");
  EXPECT_EQ(plain.canonical_path("/health/"), "/health");
  EXPECT_EQ(plain.canonical_path("/"), "/");
  EXPECT_EQ(plain.canonical_path("//"), "/");
  EXPECT_EQ(plain.canonical_path("/nowhere/"), "/nowhere/");
  EXPECT_EQ(plain.canonical_path(""), "");
}

TEST(Router, TakesTheBasePathOff) {
  const http::Router below = router("/llm");
  EXPECT_EQ(below.canonical_path("/llm/v1/models"), "/v1/models");
  EXPECT_EQ(below.canonical_path("/llm/models/"), "/v1/models");
  EXPECT_EQ(below.canonical_path("/llm"), "/");
  EXPECT_EQ(below.canonical_path("/llm/"), "/");
  EXPECT_EQ(below.canonical_path("/llmx"), "/llmx");
  EXPECT_EQ(below.canonical_path("/v1/models"), "/v1/models");
}

}  // namespace
}  // namespace kvasir::server::router_test
