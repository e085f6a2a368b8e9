#include "server/carriers/websocket/channel_message.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server::channel_message_test {
namespace {

std::string fault_of(const std::string& text) {
  std::string id;
  const auto message = carriers::parse_channel_message(text, {}, id);
  return message ? "none" : message.error().message;
}

TEST(ChannelMessage, AsksForAPath) {
  std::string id;
  const auto message =
      carriers::parse_channel_message(R"({"id":"a","path":"/v1/x","body":{"n": 1.0, "s":"\u00e9"}})", {}, id);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, "a");
  EXPECT_FALSE(message->cancel);
  EXPECT_EQ(message->path, "/v1/x");
  EXPECT_EQ(message->body, "{\"n\":1.0,\"s\":\"\xC3\xA9\"}");
}

TEST(ChannelMessage, CancelsWithoutAPath) {
  std::string id;
  const auto message = carriers::parse_channel_message(R"({"cancel":true,"id":"a"})", {}, id);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->cancel);
  EXPECT_EQ(message->id, "a");
}

TEST(ChannelMessage, SaysWhoseFaultItIs) {
  std::string id;
  EXPECT_FALSE(carriers::parse_channel_message(R"({"id":"a","path":"/v1/x","body":[]})", {}, id));
  EXPECT_EQ(id, "a");
}

TEST(ChannelMessage, NamesWhatIsWrong) {
  EXPECT_EQ(fault_of(R"({"path":"/v1/x","body":{}})"), "id is missing");
  EXPECT_EQ(fault_of(R"({"id":"a","body":{}})"), "path is missing");
  EXPECT_EQ(fault_of(R"({"id":"a","path":"/v1/x"})"), "body is missing");
  EXPECT_EQ(fault_of(R"({"id":"","path":"/v1/x","body":{}})"), "id: 0 bytes, it has 1 to 128");
  EXPECT_EQ(fault_of(R"({"id":")" + std::string(129, 'a') + R"(","path":"/","body":{}})"),
            "id: 129 bytes, it has 1 to 128");
  EXPECT_EQ(fault_of(R"({"id":1,"path":"/v1/x","body":{}})"), "id must be a string, got an integer");
  EXPECT_EQ(fault_of(R"({"id":"a","path":"/v1/x","body":[]})"), "body must be an object, got an array");
  EXPECT_EQ(fault_of(R"({"id":"a","cancel":2})"), "cancel must be a boolean, got an integer");
}

TEST(ChannelMessage, WarnsOfMembersThatItDoesNotHave) {
  std::string id;
  const auto message = carriers::parse_channel_message(
      R"({"id":"a","path":"/p","body":{"x":1},"stream":true,"cancle":true})", {}, id);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->warnings.messages,
            (std::vector<std::string>{R"(unknown field "stream" ignored)",
                                      R"(unknown field "cancle" ignored, did you mean "cancel"?)"}));
}

TEST(ChannelMessage, JoinsHeadersOfOneName) {
  const std::vector<http::Header> headers = {{"X-A", "1"}, {"X-B", "2"}, {"X-A", "3"}};
  EXPECT_EQ(carriers::status_message("i", 200, headers, {}),
            R"({"id":"i","status":200,"headers":{"X-A":"1, 3","X-B":"2"}})");
}

TEST(ChannelMessage, SaysWhatBecomesOfARequest) {
  const std::vector<http::Header> headers = {{"Retry-After", "2"}};
  EXPECT_EQ(carriers::status_message("a\"b", 503, headers, R"({"error":{}})"),
            R"({"id":"a\"b","status":503,"headers":{"Retry-After":"2"},"body":{"error":{}}})");
  EXPECT_EQ(carriers::status_message({}, 200, {}, {}), R"({"id":null,"status":200,"headers":{}})");
  EXPECT_EQ(carriers::event_message("a", R"({"x":1})"), R"({"id":"a","event":{"x":1}})");
  EXPECT_EQ(carriers::end_message("a", "complete"), R"({"id":"a","end":"complete"})");
}

}  // namespace
}  // namespace kvasir::server::channel_message_test
