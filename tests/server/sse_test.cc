// Events as text; stream_test.cc and named_events_test.cc have whole streams.
#include "server/carriers/sse.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server::carriers::sse_test {
namespace {

std::string text_of(const http::Event& event) {
  std::string text;
  kServerSentEvents.append(event, text);
  return text;
}

TEST(Sse, WritesDataAndTheNameWhereThereIsOne) {
  EXPECT_EQ(text_of({.data = R"({"a":1})"}), "data: {\"a\":1}\n\n");
  EXPECT_EQ(text_of({.data = "{\"a\":\"\u2028\"}"}), "data: {\"a\":\"\\u2028\"}\n\n") << "httpx ends lines there";
  EXPECT_EQ(text_of({.data = "{}", .name = "message_stop"}), "event: message_stop\ndata: {}\n\n");
}

TEST(Sse, WritesTheEndThatOtherCarriersLeaveOut) {
  EXPECT_EQ(text_of({.data = "[DONE]", .kind = http::Event::Kind::kEnd}), "data: [DONE]\n\n");
}

TEST(Sse, PingsWithAComment) { EXPECT_EQ(kServerSentEvents.ping, ": ping\n\n"); }

}  // namespace
}  // namespace kvasir::server::carriers::sse_test
