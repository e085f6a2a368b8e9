// Every case in cases/*.json: a request, and what its answer must be.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::conformance_test {
namespace {

using simdjson::dom::element;

std::string text_or(element object, const char* key, const char* otherwise) {
  std::string_view text;
  return std::string(object[key].get(text) ? otherwise : text);
}

bool flag(element object, const char* key) {
  bool value = false;
  return !object[key].get(value) && value;
}

// "bytes", or an array of strings and {"repeat": "a", "times": 9000}.
std::string raw_bytes(element json) {
  if (json.is_string()) return std::string(json.get_string().value());
  std::string bytes;
  const auto parts = json.get_array().value();
  for (const element part : parts) {
    if (part.is_string()) {
      bytes += part.get_string().value();
      continue;
    }
    const std::string repeated(part["repeat"].get_string().value());
    for (std::int64_t i = part["times"].get_int64().value(); i > 0; --i) bytes += repeated;
  }
  return bytes;
}

std::vector<std::string> string_list(element object, const char* key) {
  std::vector<std::string> list;
  simdjson::dom::array array;
  if (object[key].get(array)) return list;
  for (const element item : array) list.emplace_back(item.get_string().value());
  return list;
}

// The answer of one case: `raw` bytes, or method, path, headers and a body.
ClientResponse ask(const RunningServer& server, element request) {
  HttpClient client(server.port());
  element raw;
  if (!request["raw"].get(raw)) {
    client.send(raw_bytes(raw));
    return client.receive();
  }
  element json;
  std::string body;
  if (!request["body"].get(json)) body = simdjson::minify(json);
  if (!request["raw_body"].get(json)) body = raw_bytes(json);
  const std::string method = text_or(request, "method", body.empty() ? "GET" : "POST");
  return client.request(method, text_or(request, "path", "/v1/chat/completions"), body,
                        string_list(request, "headers"));
}

void check_json(const std::string& body, simdjson::dom::object wanted) {
  simdjson::dom::parser parser;
  element answer;
  ASSERT_FALSE(parser.parse(body).get(answer)) << body;
  for (const auto [pointer, value] : wanted) {
    element found;
    ASSERT_FALSE(answer.at_pointer(pointer).get(found)) << "no " << pointer << " in " << body;
    EXPECT_EQ(std::string(simdjson::minify(found)), std::string(simdjson::minify(value)))
        << pointer << " in " << body;
  }
}

// Ollama's clients get a text.
void check_error_body(const std::string& path, const std::string& body) {
  if (path.starts_with("/api/")) {
    EXPECT_TRUE(body.starts_with(R"({"error":")")) << body;
    return;
  }
  for (const char* member : {"\"error\":{\"message\":", "\"type\":", "\"param\":", "\"code\":"}) {
    EXPECT_NE(body.find(member), std::string::npos) << member << " in " << body;
  }
}

void check_answer(const ClientResponse& answer, const std::string& path, element expect) {
  EXPECT_EQ(answer.status, expect["status"].get_int64().value()) << answer.body;
  EXPECT_TRUE(answer.complete);
  simdjson::dom::object wanted;
  if (!expect["json"].get(wanted)) check_json(answer.body, wanted);
  if (!expect["headers"].get(wanted)) {
    for (const auto [name, value] : wanted) {
      EXPECT_EQ(answer.header(std::string(name)), std::string(value.get_string().value())) << name;
    }
  }
  for (const std::string& text : string_list(expect, "contains")) {
    EXPECT_NE(answer.body.find(text), std::string::npos) << text << " in " << answer.body;
  }
  for (const std::string& text : string_list(expect, "lacks")) {
    EXPECT_EQ(answer.body.find(text), std::string::npos) << text << " in " << answer.body;
  }
  if (answer.status >= 400 && !flag(expect, "no_error_body")) check_error_body(path, answer.body);
}

class Conformance : public ::testing::TestWithParam<std::string> {};

TEST_P(Conformance, AnswersAsTheCaseSays) {
  simdjson::dom::parser parser;
  element cases;
  ASSERT_FALSE(parser.load(GetParam()).get(cases));
  FakeEngine::Options engine;
  element setup;
  const bool has_setup = !cases["setup"].get(setup);
  if (has_setup) {
    engine.has_template = !flag(setup, "no_template");
    engine.has_tokenizer = !flag(setup, "no_tokenizer");
    engine.call_mark = text_or(setup, "call_mark", "");
    std::int64_t max_model_len = 0;
    if (!setup["max_model_len"].get(max_model_len))
      engine.max_model_len_tokens = static_cast<std::int32_t>(max_model_len);
    engine.answer = text_or(setup, "answer", engine.answer.c_str());
    engine.control_tokens = string_list(setup, "control_tokens");
    if (flag(setup, "queue_full")) engine.max_requests = 0;
    if (flag(setup, "fails")) engine.fail_after_tokens = 0;
    engine.follows_guides = flag(setup, "follows_guides");
  }
  ServerConfig config;
  if (has_setup) {
    simdjson::dom::array origins;
    if (!setup["cors_origins"].get(origins)) {
      for (const element origin : origins) config.cors_origins.emplace_back(origin.get_string().value());
    }
    config.base_path = text_or(setup, "base_path", "");
    config.limits.are_strict = flag(setup, "strict_limits");
  }
  const RunningServer server(engine, config);
  const auto list = cases["cases"].get_array().value();
  for (const element item : list) {
    SCOPED_TRACE(std::string(item["name"].get_string().value()));
    check_answer(ask(server, item["request"]), text_or(item["request"], "path", ""), item["expect"]);
  }
}

std::vector<std::string> case_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KVASIR_SOURCE_DIR "/tests/server/cases")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, Conformance, ::testing::ValuesIn(case_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace kvasir::server::conformance_test
