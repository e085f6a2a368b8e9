#include "server/http/origin_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kvasir::server::origin_pattern_test {
namespace {

bool matches(std::string_view pattern, std::string_view origin) {
  return http::OriginPattern::parse(pattern).value().matches(origin);
}

TEST(OriginPattern, MatchesOneOrigin) {
  EXPECT_TRUE(matches("https://chat.example", "https://chat.example"));
  EXPECT_TRUE(matches("HTTPS://Chat.Example:443", "https://chat.example"));
  EXPECT_TRUE(matches("http://localhost:3000", "http://localhost:3000"));
  EXPECT_TRUE(matches("http://[::1]:3000", "http://[::1]:3000"));
  EXPECT_TRUE(matches("app://obsidian.md", "app://obsidian.md"));
  EXPECT_TRUE(matches("null", "null"));
  EXPECT_TRUE(matches("https://b\xC3\xBC" "cher.example", "https://b\xC3\xBC" "cher.example"));
  EXPECT_FALSE(matches("https://chat.example", "http://chat.example"));
  EXPECT_FALSE(matches("https://chat.example", "https://chat.example:8443"));
  EXPECT_FALSE(matches("https://chat.example", "https://chat.example.evil"));
  EXPECT_FALSE(matches("https://chat.example", "null"));
  EXPECT_FALSE(matches("https://chat.example", ""));
}

TEST(OriginPattern, MatchesMany) {
  EXPECT_TRUE(matches("*", "https://chat.example"));
  EXPECT_TRUE(matches("*", "null"));
  EXPECT_TRUE(matches("http://localhost:*", "http://localhost"));
  EXPECT_TRUE(matches("http://localhost:*", "http://localhost:5173"));
  EXPECT_FALSE(matches("http://localhost:*", "http://localhost.evil:5173"));
  EXPECT_TRUE(matches("https://*.example.com", "https://a.b.example.com"));
  EXPECT_FALSE(matches("https://*.example.com", "https://example.com"));
  EXPECT_FALSE(matches("https://*.example.com", "https://.example.com"));
  EXPECT_FALSE(matches("https://*.example.com", "https://evilexample.com"));
  EXPECT_TRUE(matches("tauri://*", "tauri://localhost"));
}

TEST(OriginPattern, RefusesTextsThatMatchNoPage) {
  for (const char* text : {"", "chat.example", "localhost:3000", "https://", "https://chat.example/",
                           "https://chat.example/page", "https://chat.example:", "https://chat.example:80a",
                           "https://a b", "https://ch*t.example", "://x", "https://a,https://b", "**"}) {
    const auto pattern = http::OriginPattern::parse(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_EQ(pattern.error().kind, ErrorKind::kUsage);
    EXPECT_NE(pattern.error().message.find("--cors-origin"), std::string::npos);
  }
}

TEST(OriginPattern, KnowsTheUsualPages) {
  const auto allows = [](std::vector<std::string> texts, std::string_view origin) {
    const auto patterns = http::parse_origin_patterns(texts).value();
    return std::ranges::any_of(patterns, [&](const auto& pattern) { return pattern.matches(origin); });
  };
  for (const char* origin :
       {"http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080", "app://obsidian.md",
        "tauri://localhost", "vscode-webview://0abc", "http://tauri.localhost", "https://a.localhost:8443",
        "http://0.0.0.0:3000", "vscode-file://vscode-app", "capacitor://localhost", "file://",
        "wails://wails.localhost:34115"}) {
    EXPECT_TRUE(allows({}, origin)) << origin;
    EXPECT_TRUE(allows({"https://chat.example"}, origin)) << origin;
    EXPECT_FALSE(allows({"none", "https://chat.example"}, origin)) << origin;
  }
  for (const char* origin :
       {"https://chat.example", "https://localhost.example", "capacitor://evil", "null"}) {
    EXPECT_FALSE(allows({}, origin)) << origin;
  }
  EXPECT_TRUE(allows({"none", "https://chat.example"}, "https://chat.example"));
}

}  // namespace
}  // namespace kvasir::server::origin_pattern_test
