// Every field of every API with the values that clients send where they have nothing to say. What is answered
// stands in field_values.tsv: endpoint, field, then "value=status" for each value; behind the common ones may
// stand values of its own, such as one without the field that it belongs to. KVASIR_WRITE_FIELD_VALUES=FILE
// writes the table as it is.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "http_client.h"
#include "running_server.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/openai/chat_fields.h"
#include "server/api/openai/completion_request.h"
#include "server/api/openai/embedding_request.h"
#include "server/api/openai/text_request.h"
#include "server/api/rank/rerank_request.h"
#include "server/api/rank/score_request.h"
#include "server/api/responses/responses_request.h"

namespace kvasir::server::field_values_test {
namespace {

constexpr char kTable[] = KVASIR_SOURCE_DIR "/tests/server/field_values.tsv";
constexpr std::array kCommonValues = {"null", "\"\"", "[]", "{}", "false", "0", "-1", "8.0"};

struct FieldRow {
  std::string name, type, meaning;
};

struct Api {
  std::string path;
  std::map<std::string, std::string> base;  // of a request that is fine
  std::vector<FieldRow> fields;
};

template <class Target>
void add_fields(std::span<const api::Field<Target>> rows, std::vector<FieldRow>& fields) {
  for (const auto& row : rows) {
    const auto has_name = [&](const FieldRow& field) { return field.name == row.name; };
    if (std::ranges::any_of(fields, has_name)) continue;
    fields.push_back({std::string(row.name), std::string(row.type), std::string(row.meaning)});
  }
}

template <class Target>
Api make_api(std::string path, std::map<std::string, std::string> base,
             std::span<const api::Field<Target>> own) {
  Api made{std::move(path), std::move(base), {}};
  add_fields(own, made.fields);
  if (made.path != "/v1/embeddings") add_fields(api::generation_fields(), made.fields);
  return made;
}

template <class Target>
Api make_rank_api(std::string path, std::map<std::string, std::string> base,
                  std::span<const api::Field<Target>> own) {
  Api made{std::move(path), std::move(base), {}};
  add_fields(own, made.fields);
  add_fields(api::pair_fields(), made.fields);
  return made;
}

const std::vector<Api>& apis() {
  static const std::string messages = R"([{"role":"user","content":"Hi"}])";
  static const std::vector<Api> all = {
      make_api("/v1/chat/completions", {{"messages", messages}, {"max_tokens", "1"}}, api::chat_fields()),
      make_api("/v1/completions", {{"prompt", "\"Hi\""}, {"max_tokens", "1"}}, api::completion_fields()),
      make_api("/v1/generate", {{"prompt", "\"Hi\""}, {"max_tokens", "1"}}, api::text_fields()),
      make_api("/v1/responses", {{"input", "\"Hi\""}, {"max_output_tokens", "1"}}, api::responses_fields()),
      make_api("/v1/messages", {{"messages", messages}, {"max_tokens", "1"}}, api::messages_fields()),
      make_api("/v1/embeddings", {{"input", "\"Hi\""}}, api::embedding_fields()),
      make_rank_api("/v1/rerank", {{"query", "\"Hi\""}, {"documents", R"(["a"])"}}, api::rerank_fields()),
      make_rank_api("/v1/score", {{"text_1", "\"Hi\""}, {"text_2", "\"a\""}}, api::score_fields()),
  };
  return all;
}

ClientResponse ask(const RunningServer& server, const Api& asked, const std::string& field,
                   const std::string& value) {
  std::map<std::string, std::string> members = asked.base;
  members[field] = value;
  std::string body;
  for (const auto& [name, json] : members) {
    body += fmt::format("{}\"{}\":{}", body.empty() ? "{" : ",", name, json);
  }
  HttpClient client(server.port());
  return client.request("POST", asked.path, body + "}", {});
}

// "endpoint field" -> "value=status" items.
std::map<std::string, std::vector<std::string>> wanted_table() {
  std::map<std::string, std::vector<std::string>> table;
  std::ifstream file(kTable);
  for (std::string line; std::getline(file, line);) {
    std::istringstream columns(line);
    std::string path, field, item;
    std::getline(columns, path, '\t');
    std::getline(columns, field, '\t');
    std::vector<std::string>& items = table[fmt::format("{} {}", path, field)];
    while (std::getline(columns, item, '\t')) items.push_back(item);
  }
  return table;
}

std::vector<std::string> values_of(const std::vector<std::string>& items) {
  std::vector<std::string> values(kCommonValues.begin(), kCommonValues.end());
  for (const std::string& item : items) {
    const std::string value = item.substr(0, item.rfind('='));
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

TEST(FieldValues, AreAnsweredAsTheTableSays) {
  const RunningServer server;
  const auto wanted = wanted_table();
  std::string written;
  for (const Api& asked : apis()) {
    for (const FieldRow& field : asked.fields) {
      const auto row = wanted.find(asked.path + " " + field.name);
      const std::vector<std::string> items = row == wanted.end() ? std::vector<std::string>() : row->second;
      std::vector<std::string> answered;
      for (const std::string& value : values_of(items)) {
        answered.push_back(fmt::format("{}={}", value, ask(server, asked, field.name, value).status));
      }
      EXPECT_EQ(answered, items) << asked.path << " " << field.name;
      written += fmt::format("{}\t{}\t{}\n", asked.path, field.name, fmt::join(answered, "\t"));
    }
  }
  if (const char* const path = std::getenv("KVASIR_WRITE_FIELD_VALUES")) std::ofstream(path) << written;
}

// A value of the type that asks for something.
std::string wish_of(const std::string& type) {
  if (type.starts_with("boolean")) return "true";
  if (type.starts_with("integer")) return "3";
  if (type.starts_with("number")) return "0.5";
  if (type.starts_with("string")) return "\"x\"";
  return type.starts_with("array") ? R"(["x"])" : R"({"a":1})";
}

TEST(FieldValues, WhatIsLeftOutIsNamedInAWarning) {
  const RunningServer server;
  for (const Api& asked : apis()) {
    for (const FieldRow& field : asked.fields) {
      const ClientResponse answer = ask(server, asked, field.name, wish_of(field.type));
      SCOPED_TRACE(asked.path + " " + field.name + ": " + answer.body);
      if (field.meaning.starts_with("left out: ")) {
        EXPECT_EQ(answer.status, 200);
        EXPECT_TRUE(answer.header("x-kvasir-warning").starts_with(field.name + " is left out"))
            << answer.header("x-kvasir-warning");
      }
      if (field.meaning.starts_with("refused: ")) {
        EXPECT_EQ(answer.status, 400);
        EXPECT_NE(answer.body.find(field.name), std::string::npos);
      }
      if (field.meaning.starts_with("accepted")) {
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.header("x-kvasir-warning"), "");
      }
    }
  }
}

// vLLM reads them so, and llama-server answers too.
TEST(FieldValues, NumbersAndSwitchesMayBeTexts) {
  const RunningServer server;
  const std::vector<std::pair<std::string, std::vector<std::string>>> taken = {
      {"max_tokens", {"\"8\"", "\"8.0\"", "\"-1\""}}, {"seed", {"\"7\"", "\"-1\""}}, {"top_k", {"\"40\"", "\"4e1\""}},
      {"n", {"\"1\"", "\"1.0\""}},                    {"temperature", {"\"0.7\"", "\"0\"", "\"1e-3\""}},
      {"top_p", {"\"0.9\""}},                           {"stream", {"0", "\"false\"", "\"False\"", "\"0\""}},
      {"ignore_eos", {"0", "1", "\"true\"", "\"FALSE\""}}, {"logprobs", {"0", "1", "\"true\""}}};
  for (const auto& [field, values] : taken) {
    for (const std::string& value : values) {
      for (const std::size_t api : {0, 1, 3, 4}) {
        if (api != 0 && field == "logprobs") continue;
        const ClientResponse answer = ask(server, apis()[api], field, value);
        EXPECT_EQ(answer.status, 200) << apis()[api].path << " " << field << " " << value << answer.body;
      }
    }
  }
  for (const char* const value : {"\"\"", "\"hot\"", "\" 1\"", "\"1 \"", "\"0x1\"", "\"inf\"", "\"nan\"", "\"1e999\""}) {
    EXPECT_EQ(ask(server, apis()[0], "temperature", value).status, 400) << value;
  }
  for (const char* const value : {"2", "-1", "0.5", "\"2\"", "\"yes\"", "\"\""}) {
    EXPECT_EQ(ask(server, apis()[0], "ignore_eos", value).status, 400) << value;
  }
}

// The numbers 8.5 and true and other texts are no whole numbers.
TEST(FieldValues, WholeNumbersAreNotGuessed) {
  const RunningServer server;
  for (const char* const value : {"8.5", "true", "\"8.5\"", "\"8 tokens\"", "\"eight\"", "\"\"", "[8]"}) {
    for (const char* const field : {"max_tokens", "top_k", "seed", "n", "min_tokens", "priority"}) {
      EXPECT_EQ(ask(server, apis()[0], field, value).status, 400) << field << " " << value;
    }
  }
}

// PHP writes [] for {}, and Lua {} for [].
TEST(FieldValues, TheEmptyListAndTheEmptyObjectAreBothEmpty) {
  const RunningServer server;
  const std::vector<std::pair<std::size_t, std::string>> cases = {
      {0, "\"tools\":{}"},        {0, "\"stream_options\":[]"}, {0, "\"response_format\":[]"},
      {0, "\"tool_choice\":[]"},  {0, "\"stop\":{}"},           {3, "\"metadata\":[]"},
      {3, "\"tools\":{}"},        {4, "\"tool_choice\":[]"},    {4, "\"stop_sequences\":{}"},
      {4, "\"tools\":{}"}};
  for (const auto& [api, member] : cases) {
    const auto colon = member.find(':');
    const std::string field = member.substr(1, colon - 2);
    const ClientResponse answer = ask(server, apis()[api], field, member.substr(colon + 1));
    EXPECT_EQ(answer.status, 200) << apis()[api].path << " " << member << answer.body;
  }
  EXPECT_EQ(ask(server, apis()[0], "messages", "{}").status, 400);
  EXPECT_EQ(ask(server, apis()[1], "prompt", "{}").status, 400);
}

}  // namespace
}  // namespace kvasir::server::field_values_test
