// What programs send, in recorded/*.json, each answered by a scripted model: as a stream and whole, and then
// with the results of the tools that were called.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "client_answer.h"
#include "http_client.h"
#include "running_server.h"
#include "scripted_engine.h"

namespace kvasir::server::recorded_test {
namespace {

using simdjson::dom::element;

std::string text_or(element object, std::string_view key, std::string_view otherwise) {
  std::string_view text;
  return std::string(object[key].get(text) ? otherwise : text);
}

std::vector<std::string> texts_of(element object, std::string_view key) {
  std::vector<std::string> texts;
  simdjson::dom::array array;
  if (object[key].get(array)) return texts;
  for (const element item : array) texts.emplace_back(item.get_string().value());
  return texts;
}

std::string joined(const std::string& items, const std::string& more) {
  return items.empty() || more.empty() ? items + more : items + "," + more;
}

std::string items_of(element array) {
  const std::string json(simdjson::minify(array));
  return json.substr(1, json.size() - 2);
}

// The object with another value of one member.
std::string with_member(const std::string& object, std::string_view key, const std::string& value) {
  simdjson::dom::parser parser;
  const simdjson::dom::object members = parser.parse(object).get_object().value();
  std::string changed;
  for (const auto [name, json] : members) {
    if (name != key) changed = joined(changed, "\"" + std::string(name) + "\":" + std::string(simdjson::minify(json)));
  }
  return "{" + joined(changed, "\"" + std::string(key) + "\":" + value) + "}";
}

// A conversation goes on: $0, $1 are the ids of the calls before.
std::string continued(const std::string& body, element more, const ClientAnswer& answer) {
  simdjson::dom::parser parser;
  const element root = parser.parse(body).value();
  element list;
  const std::string_view key = root["messages"].get(list) ? "input" : "messages";
  EXPECT_FALSE(root[key].get(list));
  std::string added = items_of(more);
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    const std::string mark = "\"$" + std::to_string(i) + "\"";
    for (std::size_t at = added.find(mark); at != std::string::npos; at = added.find(mark)) {
      added.replace(at, mark.size(), "\"" + answer.calls[i].id + "\"");
    }
  }
  return with_member(body, key, "[" + joined(items_of(list), added) + "]");
}

std::string minified(const std::string& text) {
  simdjson::dom::parser parser;
  element json;
  return parser.parse(text).get(json) ? text : std::string(simdjson::minify(json));
}

void check_calls(const ClientAnswer& answer, element expect) {
  simdjson::dom::array wanted;
  if (expect["calls"].get(wanted)) {
    EXPECT_TRUE(answer.calls.empty());
    return;
  }
  ASSERT_EQ(answer.calls.size(), wanted.size()) << answer.text;
  std::size_t index = 0;
  for (const element call : wanted) {
    const ClientAnswer::Call& got = answer.calls[index++];
    EXPECT_EQ(got.name, text_or(call, "name", ""));
    EXPECT_EQ(got.space, text_or(call, "namespace", ""));
    EXPECT_FALSE(got.id.empty());
    element arguments;
    EXPECT_EQ(got.is_custom, call["arguments"].get(arguments) != simdjson::SUCCESS);
    if (got.is_custom) {
      EXPECT_EQ(got.arguments, text_or(call, "input", ""));
    } else {
      EXPECT_EQ(minified(got.arguments), std::string(simdjson::minify(arguments)));
    }
  }
}

class RecordedProgram {
 public:
  // `more_tokens`: control tokens besides those of the template.
  RecordedProgram(const std::string& family, const std::vector<std::string>& more_tokens)
      : family_(family), engine_(engine_of(family, more_tokens)), server_(*engine_) {}

  void play(element recorded) {
    const std::string path(recorded["path"].get_string().value());
    element body, then;
    const bool has_body = !recorded["body"].get(body);
    const std::string text = has_body ? std::string(simdjson::minify(body)) : std::string();
    const ClientAnswer answer = ask(recorded, recorded, path, text, true);
    if (recorded["then"].get(then)) return;
    SCOPED_TRACE("with the results");
    ask(recorded, then, path, continued(text, then["append"], answer), false);
  }

  // Each call that a client got is counted once.
  void check_metrics() {
    HttpClient client(server_.port());
    const std::string metrics = client.request("GET", "/metrics").body;
    const std::string line = "kvasir_tool_calls_total{end=\"complete\"} " + std::to_string(num_calls_) + "\n";
    EXPECT_TRUE(metrics.contains(line)) << line << " is missing in\n" << metrics;
  }

 private:
  static std::unique_ptr<ScriptedEngine> engine_of(const std::string& family, const std::vector<std::string>& more_tokens) {
    ScriptedEngine::Options options{.chat_template = source_of(family)};
    options.control_tokens.insert(options.control_tokens.end(), more_tokens.begin(), more_tokens.end());
    return ScriptedEngine::create(std::move(options)).value();
  }
  static std::string source_of(const std::string& family) {
    std::ifstream file(KVASIR_SOURCE_DIR "/tests/cases/template/families/" + family + ".jinja");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // As it came, and where the API knows streams the other way too.
  ClientAnswer ask(element recorded, element turn, const std::string& path, const std::string& body, bool has_warnings) {
    engine_->set_script({{"", text_or(turn, "answer", "")}});
    const element expect = turn["expect"].value();
    const bool is_ollama = path.starts_with("/api/");  // where a stream is the default
    const bool is_stream = is_ollama ? !body.contains("\"stream\":false") : body.contains("\"stream\":true");
    const ClientResponse response = send(recorded, path, body);
    EXPECT_EQ(response.status, expect["status"].get_int64().value()) << response.body;
    EXPECT_TRUE(response.complete);
    if (has_warnings) {
      const std::string for_all = text_or(expect, "warning", "");
      EXPECT_EQ(response.header("x-kvasir-warning"), text_or(expect, "warning_" + family_, for_all));
    }
    for (const std::string& part : texts_of(expect, "contains")) {
      EXPECT_TRUE(response.body.contains(part)) << part << " in " << response.body;
    }
    for (const std::string& part : texts_of(expect, "prompt")) {
      EXPECT_TRUE(engine_->last_prompt().contains(part)) << part << " in " << engine_->last_prompt();
    }
    if (text_or(turn, "answer", "").empty() || response.status != 200) return {};
    const ClientAnswer answer =
        is_stream ? read_streamed_answer(path, response.body) : read_whole_answer(path, response.body);
    check(answer, expect);
    const ClientResponse other = send(recorded, path, with_member(body, "stream", is_stream ? "false" : "true"));
    EXPECT_EQ(other.status, 200) << other.body;
    check(is_stream ? read_whole_answer(path, other.body) : read_streamed_answer(path, other.body), expect);
    return answer;
  }

  void check(const ClientAnswer& answer, element expect) {
    num_calls_ += answer.calls.size();
    EXPECT_EQ(answer.text, text_or(expect, "text", ""));
    EXPECT_EQ(answer.end, text_or(expect, "end", ""));
    check_calls(answer, expect);
  }

  ClientResponse send(element recorded, const std::string& path, const std::string& body) {
    HttpClient client(server_.port());
    const std::string method = text_or(recorded, "method", body.empty() ? "GET" : "POST");
    client.send(http_request(method, path, body, texts_of(recorded, "headers")));
    return client.receive(method == "HEAD");
  }

  const std::string family_;
  std::unique_ptr<ScriptedEngine> engine_;
  ServedEngine server_;
  std::size_t num_calls_ = 0;
};

class Recorded : public ::testing::TestWithParam<std::string> {};

TEST_P(Recorded, RequestsAreAnsweredAndToolsCalled) {
  simdjson::dom::parser parser;
  element file;
  ASSERT_FALSE(parser.load(GetParam()).get(file));
  for (const std::string& family : texts_of(file, "templates")) {
    RecordedProgram program(family, texts_of(file, "control_tokens"));
    const auto requests = file["requests"].get_array().value();
    for (const element recorded : requests) {
      SCOPED_TRACE(family + ": " + text_or(recorded, "name", ""));
      program.play(recorded);
    }
    program.check_metrics();
  }
}

std::vector<std::string> program_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KVASIR_SOURCE_DIR "/tests/server/recorded")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

INSTANTIATE_TEST_SUITE_P(Programs, Recorded, ::testing::ValuesIn(program_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace kvasir::server::recorded_test
