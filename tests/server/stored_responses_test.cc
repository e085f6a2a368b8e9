// Responses that are kept: conversations go on, background runs end once, another key finds nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "eventually.h"
#include "state_client.h"

namespace kvasir::server::stored_responses_test {
namespace {

using namespace std::chrono_literals;

std::string made(const RunningServer& server, const std::string& members) {
  const ClientResponse answer = ask(server, "POST", "/v1/responses", "{\"max_output_tokens\":20," + members + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return text_at(answer.body, "/id");
}

std::string prompt_of(const RunningServer& server) {
  std::string text;
  for (const TokenId id : server.engine.last_prompt()) {
    const auto number = static_cast<std::int32_t>(id);
    if (number < 256) text += static_cast<char>(number);
    if (number == 257) text += "<";
    if (number == 258) text += ">";
  }
  return text;
}

TEST(StoredResponses, AConversationGoesOnWithoutItsInstructions) {
  const RunningServer server;
  const std::string first = made(server, R"("input":"one","instructions":"Be brief")");
  EXPECT_NE(prompt_of(server).find("Be brief"), std::string::npos);
  const std::string second = made(server, R"("input":"two","previous_response_id":")" + first + "\"");
  const std::string prompt = prompt_of(server);
  EXPECT_EQ(prompt.find("Be brief"), std::string::npos);
  EXPECT_LT(prompt.find("one"), prompt.find("Hello, world!"));
  EXPECT_LT(prompt.find("Hello, world!"), prompt.find("two"));
  made(server, R"("input":[{"role":"user","content":"three"}],"previous_response_id":")" + second + "\"");
  EXPECT_LT(prompt_of(server).find("two"), prompt_of(server).find("three"));
  EXPECT_NE(prompt_of(server).find("one"), std::string::npos);
}

TEST(StoredResponses, AConversationMayGoOnWithoutANewInput) {
  const RunningServer server;
  const std::string first = made(server, R"("input":"one")");
  for (const char* const input : {"", R"("input":[],)", R"("input":null,)"}) {
    const std::string next = made(server, input + (R"("previous_response_id":")" + first + "\""));
    EXPECT_LT(prompt_of(server).find("one"), prompt_of(server).find("Hello, world!")) << input;
    made(server, R"("input":"two","previous_response_id":")" + next + "\"");
    EXPECT_LT(prompt_of(server).find("Hello, world!"), prompt_of(server).find("two")) << input;
  }
  EXPECT_EQ(ask(server, "POST", "/v1/responses", R"({"instructions":"Be brief"})").status, 400);
  EXPECT_EQ(ask(server, "POST", "/v1/responses", R"({"input":[]})").status, 400);
}

TEST(StoredResponses, TokensOfAConversationThatGoesOnAreCounted) {
  const RunningServer server;
  const std::string first = made(server, R"("input":"one")");
  const std::string body = R"({"input":"two","previous_response_id":")" + first + "\"}";
  const ClientResponse counted = ask(server, "POST", "/v1/responses/input_tokens", body);
  EXPECT_EQ(counted.status, 200) << counted.body;
  const ClientResponse answered = ask(server, "POST", "/v1/responses", body);
  EXPECT_EQ(text_at(counted.body, "/input_tokens"), text_at(answered.body, "/usage/input_tokens"));
  const ClientResponse unknown =
      ask(server, "POST", "/v1/responses/input_tokens", R"({"input":"two","previous_response_id":"resp_x"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(text_at(unknown.body, "/error/param"), "previous_response_id");
}

// Vercel's SDK names the items of earlier answers by their ids.
TEST(StoredResponses, ItemsOfAnEarlierResponseMayBeNamedByTheirIds) {
  const RunningServer server;
  const ClientResponse first = ask(server, "POST", "/v1/responses", R"({"input":"one"})");
  const std::string said = text_at(first.body, "/output/0/id");
  const ClientResponse listed = ask(server, "GET", "/v1/responses/" + text_at(first.body, "/id") + "/input_items");
  const std::string asked = text_at(listed.body, "/data/0/id");
  for (const char* const reference : {R"({"type":"item_reference","id":"%"})", R"({"id":"%"})"}) {
    const auto named = [&](const std::string& id) {
      std::string item = reference;
      return item.replace(item.find('%'), 1, id);
    };
    const std::string next = made(server, R"("input":[)" + named(asked) + "," + named(said) + R"(,{"role":"user","content":"two"}])");
    const std::string prompt = prompt_of(server);
    EXPECT_LT(prompt.find("one"), prompt.find("Hello, world!")) << reference;
    EXPECT_LT(prompt.find("Hello, world!"), prompt.find("two")) << reference;
    made(server, R"("input":"three","previous_response_id":")" + next + "\"");
    EXPECT_LT(prompt_of(server).find("Hello, world!"), prompt_of(server).find("three")) << reference;
  }
  const ClientResponse unknown = ask(server, "POST", "/v1/responses",
                                     R"({"input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_)" +
                                         std::string(28, '0') + "\"}]}");
  EXPECT_EQ(unknown.status, 200) << unknown.body;
}

TEST(StoredResponses, AreGivenAndForgotten) {
  const RunningServer server;
  const ClientResponse answer = ask(server, "POST", "/v1/responses", R"({"input":"Hi","metadata":{"a":"b"}})");
  const std::string path = "/v1/responses/" + text_at(answer.body, "/id");
  EXPECT_EQ(text_at(answer.body, "/store"), "true");
  EXPECT_EQ(ask(server, "GET", path).body, answer.body);
  const ClientResponse deleted = ask(server, "DELETE", path);
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(text_at(deleted.body, "/deleted"), "true");
  EXPECT_EQ(ask(server, "GET", path).status, 404);
  EXPECT_EQ(ask(server, "DELETE", path).status, 404);
}

TEST(StoredResponses, AStreamIsKeptAsItsLastEventSays) {
  const RunningServer server;
  const ClientResponse stream = ask(server, "POST", "/v1/responses", R"({"input":"Hi","stream":true})");
  const std::string last = stream.body.substr(stream.body.rfind("data: ") + 6);
  const ClientResponse stored = ask(server, "GET", "/v1/responses/" + text_at(last, "/response/id"));
  EXPECT_EQ(stored.status, 200);
  EXPECT_EQ(stored.body, text_at(last, "/response"));
}

// The data of each event.
std::vector<std::string> events_of(const std::string& stream) {
  std::vector<std::string> events;
  for (std::size_t at = stream.find("data: "); at != std::string::npos; at = stream.find("data: ", at)) {
    at += 6;
    events.push_back(stream.substr(at, stream.find('\n', at) - at));
  }
  return events;
}

TEST(StoredResponses, AreStreamedAgainAsTheyWere) {
  const RunningServer server;
  const ClientResponse first = ask(server, "POST", "/v1/responses", R"({"input":"Hi","stream":true})");
  const auto live = events_of(first.body);
  const std::string path = "/v1/responses/" + text_at(live.back(), "/response/id") + "?stream=true";
  const auto again = events_of(ask(server, "GET", path).body);
  std::vector<std::string> types;
  for (std::size_t i = 0; i < again.size(); ++i) {
    types.push_back(text_at(again[i], "/type"));
    EXPECT_EQ(text_at(again[i], "/sequence_number"), std::to_string(i));
  }
  EXPECT_EQ(types, (std::vector<std::string>{"response.created", "response.in_progress", "response.output_item.added",
                                             "response.content_part.added", "response.output_text.delta",
                                             "response.output_text.done", "response.content_part.done",
                                             "response.output_item.done", "response.completed"}));
  EXPECT_EQ(again[0], live[0]);
  EXPECT_EQ(text_at(again[2], "/item"), text_at(live[2], "/item"));
  EXPECT_EQ(text_at(again[3], "/part"), text_at(live[3], "/part"));
  EXPECT_EQ(text_at(again[4], "/delta"), "Hello, world!");
  EXPECT_EQ(text_at(again.back(), "/response"), text_at(live.back(), "/response"));
  EXPECT_EQ(events_of(ask(server, "GET", path + "&starting_after=6").body),
            std::vector<std::string>(again.begin() + 7, again.end()));
  EXPECT_EQ(events_of(ask(server, "GET", path + "&starting_after=99").body).size(), 1u);
  EXPECT_EQ(ask(server, "GET", path + "&starting_after=x").status, 400);
  EXPECT_EQ(ask(server, "GET", "/v1/responses/resp_none?stream=true").status, 404);
}

TEST(StoredResponses, AStreamWaitsForTheEndOfABackgroundRun) {
  const RunningServer server(FakeEngine::Options{.step = 40ms});
  const std::string id =
      text_at(ask(server, "POST", "/v1/responses", R"({"input":"Hi","background":true})").body, "/id");
  HttpClient client(server.port());
  client.send(http_request("GET", "/v1/responses/" + id + "?stream=true", ""));
  const auto events = events_of(client.receive().body);
  ASSERT_EQ(events.size(), 9u);
  EXPECT_EQ(text_at(events[0], "/response/status"), "in_progress");
  EXPECT_EQ(text_at(events[4], "/delta"), "Hello, world!");
  EXPECT_EQ(text_at(events[8], "/type"), "response.completed");
}

TEST(StoredResponses, StoreFalseKeepsNothing) {
  const RunningServer server;
  const std::string id = made(server, R"("input":"Hi","store":false)");
  EXPECT_EQ(ask(server, "GET", "/v1/responses/" + id).status, 404);
  const ClientResponse next =
      ask(server, "POST", "/v1/responses", R"({"input":"more","previous_response_id":")" + id + "\"}");
  EXPECT_EQ(next.status, 400);
  EXPECT_EQ(text_at(next.body, "/error/code"), "previous_response_not_found");
  EXPECT_EQ(text_at(next.body, "/error/param"), "previous_response_id");
}

TEST(StoredResponses, AGapInTheConversationIsSaid) {
  const RunningServer server;
  const std::string first = made(server, R"("input":"one")");
  const std::string second = made(server, R"("input":"two","previous_response_id":")" + first + "\"");
  ask(server, "DELETE", "/v1/responses/" + first);
  const ClientResponse next =
      ask(server, "POST", "/v1/responses", R"({"input":"three","previous_response_id":")" + second + "\"}");
  EXPECT_EQ(next.status, 400);
  EXPECT_NE(next.body.find("earlier part"), std::string::npos) << next.body;
}

TEST(StoredResponses, InputItemsComeInPages) {
  const RunningServer server;
  const std::string first = made(server, R"("input":"one")");
  const std::string second =
      made(server, R"("input":[{"role":"user","content":"two"}],"previous_response_id":")" + first + "\"");
  const std::string path = "/v1/responses/" + second + "/input_items";
  const ClientResponse page = ask(server, "GET", path + "?order=asc&limit=2");
  EXPECT_EQ(text_at(page.body, "/data/0/content/0/text"), "one");
  EXPECT_EQ(text_at(page.body, "/data/1/content/0/text"), "Hello, world!");
  EXPECT_EQ(text_at(page.body, "/has_more"), "true");
  const ClientResponse rest = ask(server, "GET", path + "?order=asc&after=" + text_at(page.body, "/last_id"));
  EXPECT_EQ(text_at(rest.body, "/data/0/content/0/text"), "two");
  EXPECT_EQ(text_at(rest.body, "/data/0/content/0/type"), "input_text");
  EXPECT_EQ(text_at(rest.body, "/has_more"), "false");
  EXPECT_EQ(text_at(ask(server, "GET", path).body, "/data/0/content/0/text"), "two");
  EXPECT_EQ(ask(server, "GET", path + "?limit=0").status, 400);
  EXPECT_EQ(ask(server, "GET", path + "?order=up").status, 400);
  EXPECT_EQ(ask(server, "GET", path + "?after=msg_none").status, 404);
}

TEST(StoredResponses, ABackgroundRunOutlivesItsClient) {
  const RunningServer server(FakeEngine::Options{.step = 5ms});
  const ClientResponse queued = ask(server, "POST", "/v1/responses", R"({"input":"Hi","background":true})");
  EXPECT_EQ(queued.status, 200);
  EXPECT_EQ(text_at(queued.body, "/status"), "queued");
  EXPECT_EQ(text_at(queued.body, "/background"), "true");
  const std::string path = "/v1/responses/" + text_at(queued.body, "/id");
  EXPECT_TRUE(eventually([&] { return text_at(ask(server, "GET", path).body, "/status") == "completed"; }));
  EXPECT_EQ(text_at(ask(server, "GET", path).body, "/output/0/content/0/text"), "Hello, world!");
  EXPECT_EQ(ask(server, "POST", path + "/cancel").status, 400);
}

TEST(StoredResponses, ABackgroundStreamOutlivesItsClient) {
  const RunningServer server(FakeEngine::Options{.step = 20ms});
  HttpClient client(server.port());
  client.send(http_request("POST", "/v1/responses", R"({"input":"Hi","background":true,"stream":true})"));
  const std::string begun = client.receive_until("response.output_text.delta");
  client.close();
  const std::size_t at = begun.find("resp_");
  ASSERT_NE(at, std::string::npos) << begun;
  const std::string path = "/v1/responses/" + begun.substr(at, begun.find('"', at) - at);
  EXPECT_TRUE(eventually([&] { return text_at(ask(server, "GET", path).body, "/status") == "completed"; }));
}

TEST(StoredResponses, ABackgroundRunIsCancelledOnce) {
  const RunningServer server(FakeEngine::Options{.answer = std::string(200, 'a'), .step = 20ms});
  const std::string id = text_at(
      ask(server, "POST", "/v1/responses", R"({"input":"Hi","background":true})").body, "/id");
  const std::string path = "/v1/responses/" + id;
  EXPECT_TRUE(eventually([&] { return text_at(ask(server, "GET", path).body, "/status") == "in_progress"; }));
  const ClientResponse cancelled = ask(server, "POST", path + "/cancel");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(text_at(cancelled.body, "/status"), "cancelled");
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 0; }));
  EXPECT_EQ(text_at(ask(server, "GET", path).body, "/status"), "cancelled");
  EXPECT_EQ(ask(server, "POST", path + "/cancel").status, 200);
  const ClientResponse plain = ask(server, "POST", "/v1/responses/" + made(server, R"("input":"x")") + "/cancel");
  EXPECT_EQ(plain.status, 400);
}

TEST(StoredResponses, ABackgroundRunThatFailsSaysWhy) {
  const RunningServer server(FakeEngine::Options{.fail_after_tokens = 2});
  const std::string path = "/v1/responses/" + text_at(ask(server, "POST", "/v1/responses",
                                                          R"({"input":"Hi","background":true})")
                                                          .body,
                                                      "/id");
  EXPECT_TRUE(eventually([&] { return text_at(ask(server, "GET", path).body, "/status") == "failed"; }));
  EXPECT_NE(text_at(ask(server, "GET", path).body, "/error/message"), "");
}

TEST(StoredResponses, BackgroundNeedsTheStore) {
  const RunningServer server;
  const ClientResponse answer =
      ask(server, "POST", "/v1/responses", R"({"input":"Hi","background":true,"store":false})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(text_at(answer.body, "/error/param"), "store");
}

TEST(StoredResponses, ARestartKeepsThemAndFailsWhatWasRunning) {
  const StateFolder folder;
  ServerConfig config;
  config.state_dir = folder.path;
  config.drain_ms = 0;
  std::string done, running;
  {
    const RunningServer server(FakeEngine::Options{.answer = std::string(200, 'a'), .step = 5ms}, config);
    done = made(server, R"("input":"one")");
    running = text_at(ask(server, "POST", "/v1/responses", R"({"input":"Hi","background":true})").body, "/id");
  }
  const RunningServer server({}, config);
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/responses/" + done).body, "/status"), "incomplete");
  const ClientResponse failed = ask(server, "GET", "/v1/responses/" + running);
  EXPECT_EQ(text_at(failed.body, "/status"), "failed");
  EXPECT_NE(text_at(failed.body, "/error/message"), "");
  made(server, R"("input":"two","previous_response_id":")" + done + "\"");
  EXPECT_NE(prompt_of(server).find("one"), std::string::npos);
}

TEST(StoredResponses, AnotherKeyFindsNothing) {
  const StateFolder folder;
  ServerConfig config;
  config.api_keys_file = folder.keys();
  const RunningServer server({}, config);
  const std::vector<std::string> ann = {"Authorization: Bearer kv-ann"}, bob = {"Authorization: Bearer kv-bob"};
  const std::string id = text_at(ask(server, "POST", "/v1/responses", R"({"input":"Hi"})", ann).body, "/id");
  const std::string path = "/v1/responses/" + id;
  EXPECT_EQ(ask(server, "GET", path, {}, ann).status, 200);
  EXPECT_EQ(ask(server, "GET", path, {}, bob).status, 404);
  EXPECT_EQ(ask(server, "GET", path + "/input_items", {}, bob).status, 404);
  EXPECT_EQ(ask(server, "POST", path + "/cancel", {}, bob).status, 404);
  EXPECT_EQ(ask(server, "DELETE", path, {}, bob).status, 404);
  const ClientResponse next =
      ask(server, "POST", "/v1/responses", R"({"input":"x","previous_response_id":")" + id + "\"}", bob);
  EXPECT_EQ(next.status, 400);
  EXPECT_EQ(ask(server, "GET", path, {}, ann).status, 200);
}

TEST(StoredResponses, ARevokedKeysBackgroundRunsEnd) {
  const StateFolder folder;
  ServerConfig config;
  config.api_keys_file = folder.keys();
  const RunningServer server({.answer = std::string(3000, 'a'), .step = 5ms, .max_model_len_tokens = 4096}, config);
  const std::vector<std::string> ann = {"Authorization: Bearer kv-ann"}, bob = {"Authorization: Bearer kv-bob"};
  const auto path_of = [&](const std::vector<std::string>& key) {
    const ClientResponse queued = ask(server, "POST", "/v1/responses",
                                      R"({"input":"Hi","background":true,"max_output_tokens":3000})", key);
    return "/v1/responses/" + text_at(queued.body, "/id");
  };
  const std::string anns = path_of(ann), bobs = path_of(bob);
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 2; }));
  const auto revoked_at = std::chrono::steady_clock::now();
  folder.keys_of({"bob"});
  EXPECT_TRUE(eventually([&] { return server.engine.num_running() == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - revoked_at, 1500ms);
  EXPECT_EQ(text_at(ask(server, "GET", bobs, {}, bob).body, "/status"), "in_progress");
  folder.keys();
  ClientResponse ended;
  EXPECT_TRUE(eventually([&] { return (ended = ask(server, "GET", anns, {}, ann)).status == 200; }));
  EXPECT_EQ(text_at(ended.body, "/status"), "failed");
  EXPECT_EQ(text_at(ended.body, "/error/message"), "the API key was revoked");
}

}  // namespace
}  // namespace kvasir::server::stored_responses_test
