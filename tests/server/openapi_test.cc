// /openapi.json holds what the tables of endpoints and fields do; and the small endpoints of vLLM's beside it.
#include "server/openapi.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_ring.h"
#include "server/routes.h"

namespace kvasir::server::openapi_test {
namespace {

using namespace std::chrono_literals;
using simdjson::dom::element;

class OpenApi : public ::testing::Test {
 protected:
  element at(const std::string& pointer) {
    const auto found = parser_.doc.root().at_pointer(pointer);
    EXPECT_EQ(found.error(), simdjson::SUCCESS) << pointer;
    return found.value_unsafe();
  }
  void SetUp() override {
    text_ = openapi::description("1.2");
    ASSERT_EQ(parser_.parse(text_).error(), simdjson::SUCCESS) << text_;
  }

  std::string text_;
  simdjson::dom::parser parser_;
};

// "/v1/models/*" is "~1v1~1models~1{id}" in a JSON pointer.
std::string pointer_of(const api::Endpoint& endpoint) {
  std::string pointer = "/paths/";
  for (const char c : endpoint.pattern) pointer += c == '/' ? "~1" : c == '*' ? "{id}" : std::string(1, c);
  pointer += '/';
  for (const unsigned char c : endpoint.method) pointer += static_cast<char>(std::tolower(c));
  return pointer;
}

TEST_F(OpenApi, HasEveryEndpoint) {
  EXPECT_EQ(std::string_view(at("/openapi")), "3.1.0");
  EXPECT_EQ(std::string_view(at("/info/version")), "1.2");
  std::set<std::string_view> ids;
  for (const api::Endpoint* const endpoint : endpoints()) {
    const std::string pointer = pointer_of(*endpoint);
    EXPECT_TRUE(ids.insert(at(pointer + "/operationId")).second) << pointer;
    EXPECT_EQ(std::string_view(at(pointer + "/summary")), endpoint->meaning);
    const bool is_open = !parser_.doc.root().at_pointer(pointer + "/security").error();
    EXPECT_EQ(is_open, auth::is_public_path(endpoint->pattern)) << endpoint->pattern;
    const bool has_body = !parser_.doc.root().at_pointer(pointer + "/requestBody").error();
    EXPECT_EQ(has_body, endpoint->fields != nullptr) << endpoint->pattern;
  }
}

TEST_F(OpenApi, HasEveryFieldWithItsTypeAndRange) {
  const std::string chat = "/components/schemas/v1_chat_completions/properties";
  EXPECT_EQ(std::string_view(at(chat + "/messages/description")), "the conversation");
  EXPECT_EQ(std::string_view(at(chat + "/messages/type/0")), "array");
  EXPECT_EQ(std::string_view(at(chat + "/tool_choice/type/0")), "string");
  EXPECT_EQ(std::string_view(at(chat + "/tool_choice/type/1")), "object");
  EXPECT_EQ(std::string_view(at(chat + "/tool_choice/type/2")), "null");
  EXPECT_EQ(std::int64_t(at(chat + "/top_p/minimum")), 0);
  EXPECT_EQ(std::int64_t(at(chat + "/top_p/maximum")), 1);
  for (const api::Endpoint* const endpoint : endpoints()) {
    if (endpoint->fields == nullptr) continue;
    const api::FieldTable table = endpoint->fields();
    for (const auto* const rows : {&table.own, &table.shared}) {
      for (const api::FieldRow& row : *rows) {
        EXPECT_TRUE(openapi::schema_types(row.type)) << row.name << ": " << row.type;
        EXPECT_NE(text_.find("\"" + std::string(row.name) + "\":{"), text_.npos) << row.name;
      }
    }
  }
}

TEST(OpenApiTypes, AreReadFromRows) {
  using Types = std::vector<std::string_view>;
  EXPECT_EQ(openapi::schema_types("integer"), Types({"integer"}));
  EXPECT_EQ(openapi::schema_types("string or array of strings"), Types({"string", "array"}));
  EXPECT_EQ(openapi::schema_types("string, token ids, or an array of either"), Types({"string", "array"}));
  EXPECT_EQ(openapi::schema_types("a cat"), std::nullopt);
}

TEST(SmallEndpoints, AnswerAsThoseOfVllm) {
  ServerConfig config;
  config.version = "1.2.3";
  const RunningServer server({.step = 50ms}, config);
  HttpClient client(server.port()), stream(server.port());
  EXPECT_EQ(client.request("GET", "/version").body, R"({"version":"1.2.3"})");
  EXPECT_EQ(client.request("GET", "/ping").status, 200);
  EXPECT_EQ(client.request("GET", "/load").body, R"({"server_load":0})");
  const ClientResponse described = client.request("GET", "/openapi.json");
  EXPECT_EQ(described.status, 200);
  EXPECT_EQ(described.header("content-type"), "application/json");
  EXPECT_EQ(described.body.find(R"({"openapi":"3.1.0")"), 0U);
  stream.send(http_request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":200,"stream":true})"));
  EXPECT_NE(stream.receive_until("data: ").find("data: "), std::string::npos);
  EXPECT_EQ(client.request("GET", "/load").body, R"({"server_load":1})");
}

}  // namespace
}  // namespace kvasir::server::openapi_test
