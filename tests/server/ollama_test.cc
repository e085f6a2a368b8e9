// Requests to Ollama's and llama-server's APIs, and the second port.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <chrono>
#include <memory>
#include <string>

#include "http_client.h"
#include "running_server.h"
#include "scripted_engine.h"

namespace kvasir::server::ollama_test {
namespace {

using namespace std::chrono_literals;

constexpr char kTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}{% if m.name %}({{ m.name }},{{ m.tool_call_id }}){% endif %}"
    "{% for c in m.tool_calls %}[{{ c.id }}:{{ c.function.name }}{{ c.function.arguments | tojson }}]{% endfor %}"
    ":{{ m.content }}<|im_end|>{% endfor %}{% if tools %}{{ tools | length }}{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}";

class Ollama : public ::testing::Test {
 protected:
  ClientResponse ask(const std::string& path, const std::string& body) {
    return HttpClient(server_.port()).request("POST", path, body);
  }

  std::unique_ptr<ScriptedEngine> engine_ =
      ScriptedEngine::create({.chat_template = kTemplate, .script = {{"", "one two three"}}}).value();
  ServedEngine server_{*engine_};
};

TEST_F(Ollama, ResultsBelongToTheCallsBeforeThem) {
  ask("/api/chat", R"({"stream":false,"messages":[{"role":"user","content":"?"},
      {"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":{"x":1}}},
                                        {"id":"b7","function":{"name":"b","arguments":{}}},
                                        {"function":{"name":"a","arguments":{"x":2}}}]},
      {"role":"tool","tool_name":"b","content":"B"},{"role":"tool","tool_name":"a","content":"A"},
      {"role":"tool","content":"C"},{"role":"tool","tool_call_id":"mine","tool_name":"z","content":"Z"}]})");
  const std::string prompt = engine_->last_prompt();
  EXPECT_TRUE(prompt.contains(R"([call00001:a{"x": 1}][b7:b{}][call00002:a{"x": 2}])")) << prompt;
  EXPECT_TRUE(prompt.contains("tool(b,b7):B")) << prompt;
  EXPECT_TRUE(prompt.contains("tool(a,call00001):A")) << prompt;
  EXPECT_TRUE(prompt.contains("tool(a,call00002):C")) << prompt;
  EXPECT_TRUE(prompt.contains("tool(z,mine):Z")) << prompt;
}

TEST_F(Ollama, AnAssistantThatSpeaksLastIsContinued) {
  ask("/api/chat", R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Well"}]})");
  EXPECT_TRUE(engine_->last_prompt().ends_with("assistant:Well")) << engine_->last_prompt();
}

TEST_F(Ollama, APromptIsAUsersUnlessItIsRaw) {
  ask("/api/generate", R"({"prompt":"Hi","system":"Be brief."})");
  EXPECT_EQ(engine_->last_prompt(),
            "<|im_start|>system:Be brief.<|im_end|><|im_start|>user:Hi<|im_end|><|im_start|>assistant:");
  ask("/api/generate", R"({"prompt":"<|im_start|>Hi","raw":true,"system":"Be brief."})");
  EXPECT_EQ(engine_->last_prompt(), "<|im_start|>Hi");
}

TEST_F(Ollama, AContextGoesOnWithTheConversation) {
  const ClientResponse first = ask("/api/generate", R"({"prompt":"Hi","stream":false})");
  simdjson::dom::parser parser;
  simdjson::dom::element answer;
  ASSERT_FALSE(parser.parse(first.body).get(answer)) << first.body;
  const std::string context = simdjson::minify(answer["context"].value());
  ask("/api/generate", fmt::format(R"({{"prompt":"And?","context":{}}})", context));
  EXPECT_EQ(engine_->last_prompt(),
            "<|im_start|>user:Hi<|im_end|><|im_start|>assistant:one two three"
            "<|im_start|>user:And?<|im_end|><|im_start|>assistant:");
}

TEST_F(Ollama, StopTextsEndAnAnswer) {
  const ClientResponse answer = ask("/api/chat", R"({"stream":false,"options":{"stop":" two"},
      "messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_TRUE(answer.body.contains(R"("content":"one"},"done":true,"done_reason":"stop")")) << answer.body;
  const ClientResponse completion = ask("/completion", R"({"prompt":"a","stop":[" three"]})");
  EXPECT_TRUE(completion.body.contains(R"("content":"one two",)")) << completion.body;
  EXPECT_TRUE(completion.body.contains(R"("stop_type":"word","stopping_word":" three")")) << completion.body;
}

TEST(OllamaPort, AnswersAsTheOtherButAtTheRoot) {
  ServerConfig config;
  config.ollama_port = 0;
  const RunningServer server({}, config);
  ASSERT_TRUE(server.server->ollama_port());
  HttpClient client(*server.server->ollama_port());
  const ClientResponse root = client.request("GET", "/");
  EXPECT_EQ(root.status, 200);
  EXPECT_EQ(root.body, "Ollama is running");
  EXPECT_EQ(client.request("GET", "/api/tags").status, 200);
  EXPECT_EQ(client.request("GET", "/v1/models").status, 200);
  EXPECT_TRUE(HttpClient(server.port()).request("GET", "/").body.contains("<title>"));
  EXPECT_EQ(HttpClient(server.port()).request("GET", "/api/tags").status, 200);
}

TEST(OllamaPort, IsOffUnlessItIsAskedFor) {
  const RunningServer server;
  EXPECT_FALSE(server.server->ollama_port());
}

// Its clients take a line that says nothing for JSON: a stream that waits has its head alone.
TEST(OllamaStream, HasNoPings) {
  const RunningServer server({.prefill = 1300ms});
  const ClientResponse answer =
      HttpClient(server.port()).request("POST", "/api/chat", R"({"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_TRUE(answer.complete);
  EXPECT_TRUE(answer.body.starts_with(R"({"model":)")) << answer.body;
  EXPECT_FALSE(answer.body.contains("\n\n"));
}

TEST(OllamaStream, EndsWithWhatWentWrong) {
  const RunningServer server({.fail_after_tokens = 2});
  const ClientResponse answer =
      HttpClient(server.port()).request("POST", "/api/chat", R"({"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.contains("\n{\"error\":\"the fake engine was told to fail\"}\n")) << answer.body;
}

TEST(OllamaLibrary, IsPulledByWhoMay) {
  ServerConfig config;
  config.allows_pull = true;
  const RunningServer server({}, config);
  HttpClient client(server.port());
  const ClientResponse pulled = client.request("POST", "/api/pull", R"({"model":"fake"})");
  EXPECT_EQ(pulled.body, "{\"status\":\"success\"}\n");
  EXPECT_EQ(client.request("POST", "/api/pull", R"({"model":"fake","stream":false})").body, R"({"status":"success"})");
  EXPECT_EQ(client.request("POST", "/api/pull", R"({"model":"llama3"})").status, 400);
  EXPECT_EQ(client.request("DELETE", "/api/delete", R"({"model":"fake"})").status, 409);
  EXPECT_EQ(client.request("DELETE", "/api/delete", R"({"model":"llama3"})").status, 404);
}

}  // namespace
}  // namespace kvasir::server::ollama_test
