#include "server/http/router.h"

#include <gtest/gtest.h>

namespace kvasir::server::router_test {
namespace {

http::Router router(std::string base_path = {}) {
  std::vector<http::Route> routes;
  for (const char* pattern :
       {"/", "/health", "/v1/models", "/v1/models/*", "/v1/chat/completions", "/tokenize"})
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
  EXPECT_EQ(plain.canonical_path("/v1%2Fmodels"), "/v1/models");
  EXPECT_EQ(plain.canonical_path("/%761/models/"), "/v1/models");
  EXPECT_EQ(plain.canonical_path("/v1/models/a%2Fb"), "/v1/models/a%2Fb");
  EXPECT_EQ(plain.canonical_path("/v1%252Fmodels"), "/v1%252Fmodels");
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

TEST(Router, AStarInTheMiddleIsOneSegment) {
  std::vector<http::Route> routes;
  for (const char* pattern : {"/v1/responses/*/input_items", "/v1/responses/*"}) routes.push_back({"GET", pattern, {}});
  const http::Router stars(std::move(routes));
  const auto pattern_of = [&](const char* path) {
    return stars.pattern_of({.method = "GET", .path = path});
  };
  EXPECT_EQ(pattern_of("/v1/responses/a/input_items"), "/v1/responses/*/input_items");
  EXPECT_EQ(pattern_of("/v1/responses/a"), "/v1/responses/*");
  EXPECT_EQ(pattern_of("/v1/responses/a/b/input_items"), "/v1/responses/*");
  EXPECT_EQ(pattern_of("/v1/responses//input_items"), "/v1/responses/*");
  EXPECT_EQ(stars.canonical_path("/responses/a/input_items/"), "/v1/responses/a/input_items");
}

TEST(Router, ReadsTheValuesOfAQuery) {
  EXPECT_EQ(http::query_value("limit=3&after=a%2Fb", "after"), "a/b");
  EXPECT_EQ(http::query_value("limit=3&after=a%2Fb", "limit"), "3");
  EXPECT_EQ(http::query_value("limit", "limit"), "");
  EXPECT_EQ(http::query_value("&&x=1", "limit"), std::nullopt);
  EXPECT_EQ(http::query_value("", "limit"), std::nullopt);
}

}  // namespace
}  // namespace kvasir::server::router_test
