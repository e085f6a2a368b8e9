// Files and batches: OpenAI's shapes, whose they are, their ends, and what a restart goes on with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "eventually.h"
#include "server/api/batches/batch_line.h"
#include "sqlite/database.h"
#include "state_client.h"

namespace kvasir::server::batches_test {
namespace {

using namespace std::chrono_literals;

constexpr char kChat[] = "/v1/chat/completions";

std::string chat_line(const std::string& id, const std::string& more = {}) {
  return fmt::format(
      R"({{"custom_id":"{}","method":"POST","url":"/v1/chat/completions","body":{{"messages":[{{"role":"user","content":"{}"}}]{}}}}})",
      id, id, more);
}

ClientResponse upload_as(const RunningServer& server, const std::string& content, const std::string& purpose = "batch",
                         std::vector<std::string> headers = {}) {
  const std::string body = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
                           "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n\r\n" +
                           content + "\r\n--b--\r\n";
  headers.push_back("Content-Type: multipart/form-data; boundary=b");
  return ask(server, "POST", "/v1/files", body, headers);
}

std::string uploaded(const RunningServer& server, const std::string& content) {
  const ClientResponse answer = upload_as(server, content);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return text_at(answer.body, "/id");
}

ClientResponse create(const RunningServer& server, const std::string& file, const std::string& endpoint = kChat,
                      const std::string& window = "24h") {
  return ask(server, "POST", "/v1/batches",
             fmt::format(R"({{"input_file_id":"{}","endpoint":"{}","completion_window":"{}","metadata":{{"a":"b"}}}})",
                         file, endpoint, window));
}

std::string ended(const RunningServer& server, const std::string& id) {
  const std::set<std::string> ends = {"completed", "failed", "cancelled", "expired"};
  std::string body;
  EXPECT_TRUE(eventually([&] {
    body = ask(server, "GET", "/v1/batches/" + id).body;
    return ends.contains(text_at(body, "/status"));
  })) << body;
  return body;
}

std::vector<std::string> lines_of(const RunningServer& server, const std::string& file) {
  api::LineFeed feed;
  feed.push(ask(server, "GET", "/v1/files/" + file + "/content").body);
  feed.end();
  std::vector<std::string> lines;
  while (auto line = feed.next()) lines.push_back(*line);
  return lines;
}

TEST(Files, AreGivenListedAndDeleted) {
  const RunningServer server;
  const ClientResponse first = upload_as(server, "{}\n");
  EXPECT_EQ(text_at(first.body, "/object"), "file");
  EXPECT_EQ(text_at(first.body, "/bytes"), "3");
  EXPECT_EQ(text_at(first.body, "/filename"), "in.jsonl");
  EXPECT_EQ(text_at(first.body, "/purpose"), "batch");
  const std::string id = text_at(first.body, "/id"), path = "/v1/files/" + id;
  const std::string second = uploaded(server, "second");
  EXPECT_EQ(ask(server, "GET", path).body, first.body);
  EXPECT_EQ(ask(server, "GET", path + "/content").body, "{}\n");
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files").body, "/data/0/id"), second);
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files?limit=1&order=asc").body, "/data/0/id"), id);
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files?purpose=batch_output").body, "/data"), "[]");
  EXPECT_EQ(ask(server, "GET", "/v1/files?after=file-none").status, 404);
  EXPECT_EQ(text_at(ask(server, "DELETE", path).body, "/deleted"), "true");
  EXPECT_EQ(ask(server, "GET", path).status, 404);
  EXPECT_EQ(ask(server, "GET", path + "/content").status, 404);
}

TEST(Files, LargeContentComesBackWhole) {
  const RunningServer server;
  std::string content(3'000'000, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 % 251);
  const std::string id = uploaded(server, content);
  EXPECT_EQ(ask(server, "GET", "/v1/files/" + id + "/content").body, content);
}

TEST(Files, WhatIsNoUploadIsNamed) {
  ServerConfig config;
  config.limits.file_bytes.max = 4096;
  const RunningServer server({}, config);
  EXPECT_EQ(text_at(upload_as(server, "x", "fine-tune").body, "/error/param"), "purpose");
  EXPECT_EQ(text_at(upload_as(server, "").body, "/error/param"), "file");
  EXPECT_EQ(text_at(ask(server, "POST", "/v1/files", "{}").body, "/error/code"), "bad_form");
  const ClientResponse large = upload_as(server, std::string(5000, 'x'));
  EXPECT_EQ(large.status, 413);
  EXPECT_NE(large.body.find("4096"), std::string::npos) << large.body;
}

TEST(Files, HaveALimitOfTheirOwn) {
  ServerConfig config;
  config.limits.body_bytes.max = 4096;
  config.limits.file_bytes.max = 100'000;
  const RunningServer server({}, config);
  const std::string id = uploaded(server, std::string(50'000, 'x'));
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files/" + id).body, "/bytes"), "50000");
  const ClientResponse large = upload_as(server, std::string(100'001, 'x'));
  EXPECT_EQ(large.status, 413);
  EXPECT_NE(large.body.find("the limit is 100000"), std::string::npos) << large.body;
  const std::string prompt = R"({"prompt":")" + std::string(5000, 'x') + "\"}";
  EXPECT_EQ(ask(server, "POST", "/v1/completions", prompt).status, 413);
  HttpClient chunked(server.port());
  chunked.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" +
               fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", prompt.size(), prompt));
  EXPECT_EQ(chunked.receive().status, 413);
}

TEST(Batches, EveryLineIsAnsweredInTheFilesShape) {
  const RunningServer server;
  const std::string file = uploaded(server, chat_line("one") + "\n\n" + chat_line("two", R"(,"max_tokens":2)") + "\r\n" +
                                                chat_line("bad", R"(,"n":99)") + "\n" +
                                                chat_line("stream", R"(,"stream":true)"));
  const ClientResponse made = create(server, file);
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(text_at(made.body, "/object"), "batch");
  EXPECT_EQ(text_at(made.body, "/status"), "validating");
  EXPECT_EQ(text_at(made.body, "/metadata/a"), "b");
  EXPECT_EQ(text_at(made.body, "/output_file_id"), "null");
  const std::string body = ended(server, text_at(made.body, "/id"));
  EXPECT_EQ(text_at(body, "/status"), "completed");
  EXPECT_EQ(text_at(body, "/request_counts"), R"({"total":4,"completed":2,"failed":2})");
  EXPECT_NE(text_at(body, "/completed_at"), "null");
  const auto output = lines_of(server, text_at(body, "/output_file_id"));
  ASSERT_EQ(output.size(), 2u);
  std::set<std::string> ids;
  for (const std::string& line : output) {
    ids.insert(text_at(line, "/custom_id"));
    EXPECT_EQ(text_at(line, "/response/status_code"), "200");
    EXPECT_NE(text_at(line, "/response/body/choices/0/message/content"), "");
    EXPECT_EQ(text_at(line, "/error"), "null");
  }
  EXPECT_EQ(ids, (std::set<std::string>{"one", "two"}));
  const auto errors = lines_of(server, text_at(body, "/error_file_id"));
  ASSERT_EQ(errors.size(), 2u);
  for (const std::string& line : errors) {
    EXPECT_EQ(text_at(line, "/response/status_code"), "400");
    EXPECT_NE(text_at(line, "/response/body/error/message"), "");
  }
  const ClientResponse facts = ask(server, "GET", "/v1/files/" + text_at(body, "/output_file_id"));
  EXPECT_EQ(text_at(facts.body, "/purpose"), "batch_output");
  EXPECT_GT(std::stoll(text_at(facts.body, "/bytes")), 100);
  EXPECT_EQ(ask(server, "DELETE", "/v1/files/" + file).status, 200) << "no batch needs it any more";
}

TEST(Batches, EveryEndpointTakesLines) {
  const RunningServer server;
  for (const auto& [endpoint, body] :
       {std::pair("/v1/completions", R"({"prompt":"a"})"), std::pair("/v1/embeddings", R"({"input":"a"})"),
        std::pair("/v1/responses", R"({"input":"a"})"), std::pair("/v1/rerank", R"({"query":"a","documents":["b"]})"),
        std::pair("/v1/score", R"({"text_1":"a","text_2":"b"})")}) {
    const std::string line = fmt::format(R"({{"custom_id":"x","method":"POST","url":"{}","body":{}}})", endpoint, body);
    const std::string ends = ended(server, text_at(create(server, uploaded(server, line), endpoint).body, "/id"));
    EXPECT_EQ(text_at(ends, "/request_counts"), R"({"total":1,"completed":1,"failed":0})") << endpoint << ends;
  }
}

TEST(Batches, LinesRunBehindOtherRequestsWhateverTheyAskFor) {
  const RunningServer server;
  ended(server, text_at(create(server, uploaded(server, chat_line("x", R"(,"priority":-5)"))).body, "/id"));
  EXPECT_EQ(server.engine.last_request().priority, 100);
}

TEST(Batches, AFileThatIsNoneFailsWithItsLines) {
  const RunningServer server;
  const std::string file = uploaded(server, chat_line("one") + "\nno json\n" + chat_line("one") + "\n" +
                                                R"({"custom_id":"u","method":"POST","url":"/v1/embeddings","body":{}})");
  const std::string body = ended(server, text_at(create(server, file).body, "/id"));
  EXPECT_EQ(text_at(body, "/status"), "failed");
  EXPECT_EQ(text_at(body, "/errors/data/0/line"), "2");
  EXPECT_EQ(text_at(body, "/errors/data/1/code"), "duplicate_custom_id");
  EXPECT_EQ(text_at(body, "/errors/data/1/line"), "3");
  EXPECT_EQ(text_at(body, "/errors/data/2/code"), "mismatched_url");
  EXPECT_EQ(server.engine.last_prompt().size(), 0u) << "nothing was asked";
}

TEST(Batches, WhatIsMissingOrWrongIsNamed) {
  const RunningServer server;
  EXPECT_EQ(create(server, "file-none").status, 404);
  const std::string file = uploaded(server, chat_line("a"));
  EXPECT_EQ(text_at(create(server, file, "/v1/models").body, "/error/param"), "endpoint");
  for (const char* const window : {"", "24", "h", "0h", "24x", "99999999999999999h", "31d", "-1h"}) {
    EXPECT_EQ(text_at(create(server, file, kChat, window).body, "/error/param"), "completion_window") << window;
  }
  EXPECT_EQ(ask(server, "GET", "/v1/batches/batch_none").status, 404);
  EXPECT_EQ(ask(server, "POST", "/v1/batches/batch_none/cancel").status, 404);
}

TEST(Batches, ACancelledOneEndsWithWhatItHas) {
  const RunningServer server(FakeEngine::Options{.answer = std::string(150, 'a'), .step = 10ms});
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += chat_line(std::to_string(i), i == 0 ? R"(,"max_tokens":1)" : "") + "\n";
  const std::string file = uploaded(server, lines), id = text_at(create(server, file).body, "/id");
  const std::string path = "/v1/batches/" + id;
  EXPECT_TRUE(eventually(
      [&] { return text_at(ask(server, "GET", path).body, "/request_counts/completed") == "1"; }));
  EXPECT_EQ(ask(server, "DELETE", "/v1/files/" + file).status, 409);
  EXPECT_EQ(text_at(ask(server, "POST", path + "/cancel").body, "/status"), "cancelling");
  const std::string body = ended(server, id);
  EXPECT_EQ(text_at(body, "/status"), "cancelled");
  EXPECT_NE(text_at(body, "/cancelled_at"), "null");
  EXPECT_EQ(lines_of(server, text_at(body, "/output_file_id")).size(), 1u);
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
  EXPECT_EQ(ask(server, "POST", path + "/cancel").status, 409);
}

TEST(Batches, AFullEngineIsAskedAgain) {
  const RunningServer server(FakeEngine::Options{.step = 1ms, .max_requests = 2});
  std::string lines;
  for (int i = 0; i < 6; ++i) lines += chat_line(std::to_string(i)) + "\n";
  const std::string id = text_at(create(server, uploaded(server, lines)).body, "/id");
  std::string body;
  for (int i = 0; i < 4 && text_at(body, "/status") != "completed"; ++i) {
    eventually([&] {
      body = ask(server, "GET", "/v1/batches/" + id).body;
      return text_at(body, "/status") == "completed";
    });
  }
  EXPECT_EQ(text_at(body, "/request_counts"), R"({"total":6,"completed":6,"failed":0})") << body;
}

TEST(Batches, AreListedInPages) {
  const RunningServer server;
  const std::string file = uploaded(server, chat_line("a"));
  const std::string first = text_at(create(server, file).body, "/id"), second = text_at(create(server, file).body, "/id");
  const ClientResponse page = ask(server, "GET", "/v1/batches?limit=1");
  EXPECT_EQ(text_at(page.body, "/data/0/id"), second);
  EXPECT_EQ(text_at(page.body, "/has_more"), "true");
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/batches?after=" + second).body, "/data/0/id"), first);
  ended(server, first);
  ended(server, second);
}

TEST(Batches, AnotherKeyFindsNothing) {
  const StateFolder folder;
  ServerConfig config;
  config.api_keys_file = folder.keys();
  const RunningServer server({}, config);
  const std::vector<std::string> ann = {"Authorization: Bearer kv-ann"}, bob = {"Authorization: Bearer kv-bob"};
  const std::string file = text_at(upload_as(server, chat_line("a"), "batch", ann).body, "/id");
  const std::string body =
      fmt::format(R"({{"input_file_id":"{}","endpoint":"{}","completion_window":"24h"}})", file, kChat);
  EXPECT_EQ(ask(server, "POST", "/v1/batches", body, bob).status, 404);
  const std::string id = text_at(ask(server, "POST", "/v1/batches", body, ann).body, "/id");
  EXPECT_EQ(ask(server, "GET", "/v1/batches/" + id, {}, bob).status, 404);
  EXPECT_EQ(ask(server, "POST", "/v1/batches/" + id + "/cancel", {}, bob).status, 404);
  EXPECT_EQ(ask(server, "GET", "/v1/files/" + file + "/content", {}, bob).status, 404);
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files", {}, bob).body, "/data"), "[]");
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/batches", {}, bob).body, "/data"), "[]");
  EXPECT_TRUE(eventually([&] {
    return text_at(ask(server, "GET", "/v1/batches/" + id, {}, ann).body, "/status") == "completed";
  }));
  EXPECT_EQ(server.engine.last_request().tenant, "ann");
}

TEST(Batches, ARevokedKeysBatchesFail) {
  const StateFolder folder;
  ServerConfig config;
  config.api_keys_file = folder.keys();
  const RunningServer server({.answer = std::string(3000, 'a'), .step = 5ms, .max_model_len_tokens = 4096}, config);
  const std::vector<std::string> ann = {"Authorization: Bearer kv-ann"};
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += chat_line(std::to_string(i)) + "\n";
  const std::string file = text_at(upload_as(server, lines, "batch", ann).body, "/id");
  const std::string body =
      fmt::format(R"({{"input_file_id":"{}","endpoint":"{}","completion_window":"24h"}})", file, kChat);
  const std::string path = "/v1/batches/" + text_at(ask(server, "POST", "/v1/batches", body, ann).body, "/id");
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() > 0; }));
  folder.keys_of({"bob"});
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
  folder.keys();
  ClientResponse ended;
  EXPECT_TRUE(eventually([&] { return (ended = ask(server, "GET", path, {}, ann)).status == 200; }));
  EXPECT_EQ(text_at(ended.body, "/status"), "failed");
  EXPECT_EQ(text_at(ended.body, "/errors/data/0/code"), "invalid_api_key");
  EXPECT_EQ(server.engine.num_running(), 0) << "no further line is asked";
}

TEST(Batches, ARestartAsksOnlyWhatHasNoAnswer) {
  const StateFolder folder;
  ServerConfig config;
  config.state_dir = folder.path;
  config.drain_ms = 0;
  std::string lines, id;
  for (int i = 0; i < 30; ++i) lines += chat_line(std::to_string(i), i < 3 ? R"(,"max_tokens":1)" : "") + "\n";
  {
    const RunningServer server(FakeEngine::Options{.answer = std::string(150, 'a'), .step = 10ms}, config);
    id = text_at(create(server, uploaded(server, lines)).body, "/id");
    EXPECT_TRUE(eventually([&] {
      return text_at(ask(server, "GET", "/v1/batches/" + id).body, "/request_counts/completed") == "3";
    }));
  }
  const RunningServer server({}, config);
  const std::string body = ended(server, id);
  EXPECT_EQ(text_at(body, "/request_counts"), R"({"total":30,"completed":30,"failed":0})");
  std::multiset<std::string> ids;
  std::size_t num_short = 0;
  for (const std::string& line : lines_of(server, text_at(body, "/output_file_id"))) {
    ids.insert(text_at(line, "/custom_id"));
    num_short += text_at(line, "/response/body/choices/0/message/content") == "a";
  }
  EXPECT_EQ(ids.size(), 30u);
  EXPECT_EQ((std::set<std::string>(ids.begin(), ids.end()).size()), 30u);
  EXPECT_EQ(num_short, 3u) << "the answers of the first process";
}

TEST(Batches, WhenTheWindowEndsTheRestIsInTheErrorFile) {
  const StateFolder folder;
  ServerConfig config;
  config.state_dir = folder.path;
  config.drain_ms = 0;
  std::string lines, id;
  for (int i = 0; i < 20; ++i) lines += chat_line(std::to_string(i), i == 0 ? R"(,"max_tokens":1)" : "") + "\n";
  {
    const RunningServer server(FakeEngine::Options{.answer = std::string(150, 'a'), .step = 10ms}, config);
    id = text_at(create(server, uploaded(server, lines)).body, "/id");
    EXPECT_TRUE(eventually([&] {
      return text_at(ask(server, "GET", "/v1/batches/" + id).body, "/request_counts/completed") == "1";
    }));
  }
  {
    auto database =
        sqlite::Database::open(folder.path + "/stored.sqlite", sqlite::Database::Access::kReadWrite).value();
    ASSERT_TRUE(database.execute("UPDATE objects SET json = json_set(json, '$.expires_at', 1) WHERE kind = 2"));
  }
  const RunningServer server({}, config);
  const std::string body = ended(server, id);
  EXPECT_EQ(text_at(body, "/status"), "expired");
  EXPECT_EQ(text_at(body, "/request_counts"), R"({"total":20,"completed":1,"failed":19})");
  const auto errors = lines_of(server, text_at(body, "/error_file_id"));
  ASSERT_EQ(errors.size(), 19u);
  EXPECT_EQ(text_at(errors[0], "/response"), "null");
  EXPECT_EQ(text_at(errors[0], "/error/code"), "batch_expired");
}

}  // namespace
}  // namespace kvasir::server::batches_test
