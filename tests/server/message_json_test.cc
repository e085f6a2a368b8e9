#include "server/carriers/grpc/message_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kvasir/v1/kvasir.pb.h"

namespace kvasir::server::message_json_test {
namespace {

std::string json_of(const google::protobuf::Message& message, std::string_view alias = {},
                    std::string_view name = {}) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  carriers::append_members(json, message, alias, name);
  json.end_object();
  return out;
}

TEST(MessageJson, HasTheFieldsThatAreSet) {
  v1::GenerateRequest request;
  EXPECT_EQ(json_of(request), R"({})");
  request.set_prompt("a \"b\"\n");
  request.set_temperature(0.0);
  request.set_seed(std::numeric_limits<std::uint64_t>::max());
  request.add_stop("x");
  request.add_stop("");
  request.set_ignore_eos(false);
  request.set_max_tokens(-3);
  (*request.mutable_logit_bias())[7] = -1.5;
  EXPECT_EQ(json_of(request),
            R"({"prompt":"a \"b\"\n","max_tokens":-3,"temperature":0,"seed":18446744073709551615,)"
            R"("stop":["x",""],"ignore_eos":false,"logit_bias":{"7":-1.5}})");
}

TEST(MessageJson, CallsAListByTheOtherName) {
  v1::GenerateRequest request;
  request.add_prompt_token_ids(1);
  request.add_prompt_token_ids(-2);
  EXPECT_EQ(json_of(request, "prompt_token_ids", "prompt"), R"({"prompt":[1,-2]})");
}

TEST(MessageJson, HasMessagesWithinMessages) {
  v1::TokenizeRequest request;
  v1::Message& message = *request.add_messages();
  message.set_role("user");
  message.set_content("é");
  EXPECT_EQ(json_of(request), R"({"messages":[{"role":"user","content":"é"}]})");
}

TEST(MessageJson, NamesANumberThatIsNotFinite) {
  const auto refusal = [](const google::protobuf::Message& message) {
    return carriers::check_finite(message).error();
  };
  v1::GenerateRequest request;
  request.set_temperature(1e308);
  (*request.mutable_logit_bias())[7] = -1.5;
  EXPECT_TRUE(carriers::check_finite(request));
  request.set_temperature(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(refusal(request).message, "temperature: nan is no finite number");
  EXPECT_EQ(refusal(request).param, "temperature");
  request.set_temperature(0.5);
  (*request.mutable_logit_bias())[7] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(request).message, "logit_bias.7: -inf is no finite number");
}

TEST(MessageJson, ReadsWhatTheMessageHasAPlaceFor) {
  v1::GenerateResponse response;
  ASSERT_TRUE(carriers::read_message(
      R"({"id":"g","text":"é","token_ids":[1,2],"finish_reason":null,"more":{"a":[1]}})", response));
  EXPECT_EQ(response.id(), "g");
  EXPECT_EQ(response.text(), "é");
  EXPECT_EQ(response.token_ids_size(), 2);
  EXPECT_EQ(response.finish_reason(), "");
  EXPECT_FALSE(response.has_kv());
  ASSERT_TRUE(carriers::read_message(
      R"({"kv":{"bytes":5000000000,"share":0.25,"dropped":3,"dropped_share":0.5}})", response));
  EXPECT_EQ(response.kv().bytes(), 5'000'000'000);
  EXPECT_EQ(response.kv().share(), 0.25);
  EXPECT_EQ(response.kv().dropped(), 3);
  EXPECT_FALSE(carriers::read_message("[]", response));
  EXPECT_FALSE(carriers::read_message(R"({"prompt_tokens":"many"})", response));
}

}  // namespace
}  // namespace kvasir::server::message_json_test
