#include "store/hub/hub_name.h"

#include <gtest/gtest.h>

#include "store/hub/http_client.h"
#include "store/hub/hub_client.h"

namespace kvasir::store::hub_name_test {
namespace {

TEST(HubName, ReadsAllParts) {
  const auto name = HubName::parse("hf:Owner-1/na.me_2@refs/pr/1:sub/m-Q8_0.gguf");
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ(name->id(), "Owner-1/na.me_2");
  EXPECT_EQ(name->revision, "refs/pr/1");
  EXPECT_EQ(name->file, "sub/m-Q8_0.gguf");
  EXPECT_EQ(name->text(), "hf:Owner-1/na.me_2@refs/pr/1:sub/m-Q8_0.gguf");
  EXPECT_EQ(HubName::parse("hf:o/m")->revision_or_main(), "main");
  EXPECT_EQ(HubName::parse("hf:o/m:a@b.gguf")->file, "a@b.gguf");
}

TEST(HubName, RefusesWhatCouldLeaveItsFolder) {
  for (const char* text :
       {"hf:",     "hf:o",        "hf:o/",     "hf:/m",       "hf:../m",     "hf:o/..",     "hf:o/a--b",
        "hf:-o/m", "hf:o/m/x",    "o/m",       "hf:o/m@",     "hf:o/m@../x", "hf:o/m@/x",   "hf:o/m@a?b",
        "hf:o/m:", "hf:o/m:../x", "hf:o/m:/x", "hf:o/m:a//b", "hf:o/m:a\\b", "hf:o/m:a\nb", "hf:o/m\n"}) {
    const auto name = HubName::parse(text);
    EXPECT_FALSE(name) << text;
    EXPECT_TRUE(name || name.error().message.find('\n') == std::string::npos);
  }
}

TEST(HubName, TwoAddressesAreOfOneHostByTheirOrigin) {
  EXPECT_EQ(origin_of("https://hub.example/a"), origin_of("https://HUB.example:443/b?c"));
  EXPECT_NE(origin_of("https://hub.example"), origin_of("http://hub.example"));
  EXPECT_NE(origin_of("https://hub.example"), origin_of("https://hub.example.evil"));
  EXPECT_NE(origin_of("https://hub.example"), origin_of("https://hub.example@evil"));
  EXPECT_NE(origin_of("http://127.0.0.1:1"), origin_of("http://127.0.0.1:2"));
  EXPECT_EQ(origin_of("file:///etc/passwd"), "");
}

TEST(HubName, RedirectsAreResolvedAgainstTheirPage) {
  EXPECT_EQ(resolve_url("https://h/a/b", "/c?d"), "https://h/c?d");
  EXPECT_EQ(resolve_url("https://h/a/b", "c"), "https://h/a/c");
  EXPECT_EQ(origin_of(resolve_url("https://h/a", "//evil/c")), "https://evil:443");
  EXPECT_EQ(resolve_url("https://h/a", "file:///etc/passwd"), "");
  EXPECT_EQ(percent_encoded("a b/é#", true), "a%20b/%C3%A9%23");
  EXPECT_EQ(percent_encoded("refs/pr/1", false), "refs%2Fpr%2F1");
}

TEST(HubName, TheNextPageIsTheOneOfItsRelation) {
  EXPECT_EQ(next_page("<https://h/2>; rel=\"next\""), "https://h/2");
  EXPECT_EQ(next_page("<https://h/0>; rel=\"prev\", <https://h/2>; rel=\"next\""), "https://h/2");
  EXPECT_EQ(next_page("<https://h/0>; rel=\"prev\""), "");
  EXPECT_EQ(next_page("<https://h/0"), "");
  EXPECT_EQ(next_page(""), "");
}

}  // namespace
}  // namespace kvasir::store::hub_name_test
