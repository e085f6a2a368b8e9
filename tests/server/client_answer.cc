#include "client_answer.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace kvasir::server {
namespace {

using simdjson::dom::element;

std::string member(element json, std::string_view pointer) {
  std::string_view text;
  if (json.at_pointer(pointer).get(text)) {
    ADD_FAILURE() << "no text " << pointer << " in " << simdjson::minify(json);
  }
  return std::string(text);
}

std::string member_or_empty(element json, std::string_view pointer) {
  std::string_view text;
  return json.at_pointer(pointer).get(text) ? std::string() : std::string(text);
}

std::int64_t number(element json, std::string_view pointer) {
  std::int64_t value = -1;
  if (json.at_pointer(pointer).get(value)) {
    ADD_FAILURE() << "no number " << pointer << " in " << simdjson::minify(json);
  }
  return value;
}

std::string json_of(element json, std::string_view pointer) {
  element found;
  return json.at_pointer(pointer).get(found) ? std::string() : std::string(simdjson::minify(found));
}

simdjson::dom::array array_of(element json, std::string_view pointer) {
  simdjson::dom::array array;
  if (json.at_pointer(pointer).get(array)) {
    ADD_FAILURE() << "no array " << pointer << " in " << simdjson::minify(json);
  }
  return array;
}

ClientAnswer::Call function_call(element call, const char* name, const char* arguments) {
  return {.id = member_or_empty(call, "/id"),
          .name = member(call, name),
          .space = {},
          .arguments = member(call, arguments)};
}

ClientAnswer whole_chat(element json) {
  ClientAnswer answer{.text = member_or_empty(json, "/choices/0/message/content"),
                      .calls = {},
                      .end = member(json, "/choices/0/finish_reason")};
  simdjson::dom::array calls;
  if (json.at_pointer("/choices/0/message/tool_calls").get(calls)) return answer;
  for (const element call : calls) {
    const bool is_custom = member(call, "/type") == "custom";
    answer.calls.push_back(is_custom ? function_call(call, "/custom/name", "/custom/input")
                                     : function_call(call, "/function/name", "/function/arguments"));
    answer.calls.back().is_custom = is_custom;
  }
  return answer;
}

ClientAnswer whole_completion(element json) {
  return {.text = member(json, "/choices/0/text"), .calls = {}, .end = member(json, "/choices/0/finish_reason")};
}

ClientAnswer whole_message(element json) {
  ClientAnswer answer{.text = {}, .calls = {}, .end = member(json, "/stop_reason")};
  for (const element block : array_of(json, "/content")) {
    if (member(block, "/type") == "text") {
      answer.text += member(block, "/text");
    } else {
      EXPECT_EQ(member(block, "/type"), "tool_use");
      answer.calls.push_back(
          {.id = member(block, "/id"), .name = member(block, "/name"), .space = {}, .arguments = json_of(block, "/input")});
    }
  }
  return answer;
}

void append_item(element item, ClientAnswer& answer) {
  const std::string type = member(item, "/type");
  if (type == "message") {
    answer.text += member(item, "/content/0/text");
    return;
  }
  const bool is_custom = type == "custom_tool_call";
  EXPECT_TRUE(is_custom || type == "function_call") << type;
  EXPECT_FALSE(member(item, "/id").empty());
  answer.calls.push_back({.id = member(item, "/call_id"),
                          .name = member(item, "/name"),
                          .space = member_or_empty(item, "/namespace"),
                          .arguments = member(item, is_custom ? "/input" : "/arguments"),
                          .is_custom = is_custom});
}

ClientAnswer whole_response(element json) {
  ClientAnswer answer{.text = {}, .calls = {}, .end = member(json, "/status")};
  for (const element item : array_of(json, "/output")) append_item(item, answer);
  return answer;
}

// Takes the events of a stream one by one.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  // `name`: of the event; empty where it has none.
  virtual void take(const std::string& name, element data) = 0;
  virtual void end() = 0;
  ClientAnswer answer;
};

class ChatStream final : public StreamReader {
 public:
  void take(const std::string& name, element data) override {
    EXPECT_EQ(name, "");
    if (array_of(data, "/choices").size() == 0) return;  // the usage
    answer.text += member_or_empty(data, "/choices/0/text") + member_or_empty(data, "/choices/0/delta/content");
    answer.end += member_or_empty(data, "/choices/0/finish_reason");
    simdjson::dom::array calls;
    if (data.at_pointer("/choices/0/delta/tool_calls").get(calls)) return;
    for (const element call : calls) take_call(call);
  }
  void end() override { EXPECT_FALSE(answer.end.empty()) << "no finish_reason"; }

 private:
  void take_call(element call) {
    const auto index = static_cast<std::size_t>(number(call, "/index"));
    if (index == answer.calls.size()) {
      const bool is_custom = member(call, "/type") == "custom";
      answer.calls.push_back({.id = member(call, "/id"),
                              .name = member(call, is_custom ? "/custom/name" : "/function/name"),
                              .space = {},
                              .arguments = {},
                              .is_custom = is_custom});
    }
    ASSERT_EQ(index + 1, answer.calls.size()) << "a piece of no open call";
    ClientAnswer::Call& open = answer.calls.back();
    open.arguments += member(call, open.is_custom ? "/custom/input" : "/function/arguments");
  }
};

class MessagesStream final : public StreamReader {
 public:
  void take(const std::string& name, element data) override {
    EXPECT_EQ(name, member(data, "/type"));
    if (name == "ping") return;
    EXPECT_EQ(name == "message_start", num_events_++ == 0) << name;
    EXPECT_FALSE(is_over_) << name;
    if (name == "message_start") {
      EXPECT_EQ(array_of(data, "/message/content").size(), 0u);
      number(data, "/message/usage/input_tokens");
    } else if (name == "content_block_start") {
      begin_block(data);
    } else if (name == "content_block_delta") {
      take_delta(data);
    } else if (name == "content_block_stop") {
      EXPECT_TRUE(std::exchange(is_open_, false));
      EXPECT_EQ(number(data, "/index"), num_blocks_ - 1);
      if (is_call_ && answer.calls.back().arguments.empty()) answer.calls.back().arguments = "{}";
    } else if (name == "message_delta") {
      EXPECT_FALSE(is_open_);
      answer.end = member(data, "/delta/stop_reason");
      number(data, "/usage/output_tokens");
    } else {
      EXPECT_EQ(name, "message_stop");
      is_over_ = true;
    }
  }
  void end() override { EXPECT_TRUE(is_over_) << "no message_stop"; }

 private:
  void begin_block(element data) {
    EXPECT_FALSE(std::exchange(is_open_, true));
    EXPECT_EQ(number(data, "/index"), num_blocks_++);
    is_call_ = member(data, "/content_block/type") == "tool_use";
    if (!is_call_) return;
    EXPECT_EQ(json_of(data, "/content_block/input"), "{}");
    answer.calls.push_back({.id = member(data, "/content_block/id"),
                            .name = member(data, "/content_block/name"),
                            .space = {},
                            .arguments = {}});
  }
  void take_delta(element data) {
    EXPECT_TRUE(is_open_);
    EXPECT_EQ(number(data, "/index"), num_blocks_ - 1);
    EXPECT_EQ(member(data, "/delta/type"), is_call_ ? "input_json_delta" : "text_delta");
    if (is_call_) {
      answer.calls.back().arguments += member(data, "/delta/partial_json");
    } else {
      answer.text += member(data, "/delta/text");
    }
  }

  int num_events_ = 0;
  std::int64_t num_blocks_ = 0;
  bool is_open_ = false, is_call_ = false, is_over_ = false;
};

class ResponsesStream final : public StreamReader {
 public:
  void take(const std::string& name, element data) override {
    EXPECT_EQ(name, member(data, "/type"));
    EXPECT_EQ(number(data, "/sequence_number"), num_events_);
    EXPECT_EQ(name == "response.created", num_events_ == 0) << name;
    EXPECT_EQ(name == "response.in_progress", num_events_ == 1) << name;
    if (num_events_++ < 2) return;
    EXPECT_TRUE(answer.end.empty()) << name << " behind the end";
    if (name == "response.output_item.added") {
      EXPECT_TRUE(std::exchange(item_id_, member(data, "/item/id")).empty()) << "an item is open";
      EXPECT_EQ(number(data, "/output_index"), num_items_);
      pieces_.clear();
      is_message_ = member(data, "/item/type") == "message";
    } else if (name == "response.output_item.done") {
      end_item(data);
    } else if (name == "response.completed" || name == "response.incomplete") {
      end_response(data);
    } else {
      EXPECT_EQ(member(data, "/item_id"), item_id_) << name;
      EXPECT_EQ(number(data, "/output_index"), num_items_) << name;
      take_piece(name, data);
    }
  }
  void end() override { EXPECT_FALSE(answer.end.empty()) << "no last event"; }

 private:
  void take_piece(const std::string& name, element data) {
    if (name.ends_with(".delta")) {
      pieces_ += member(data, "/delta");
    } else if (name == "response.output_text.done") {
      EXPECT_EQ(member(data, "/text"), pieces_);
    } else if (name == "response.function_call_arguments.done") {
      EXPECT_EQ(member(data, "/arguments"), pieces_);
    } else if (name == "response.custom_tool_call_input.done") {
      EXPECT_EQ(member(data, "/input"), pieces_);
    } else {
      EXPECT_TRUE(is_message_ && name.starts_with("response.content_part.")) << name;
    }
  }
  void end_item(element data) {
    EXPECT_EQ(member(data, "/item/id"), std::exchange(item_id_, {}));
    EXPECT_EQ(number(data, "/output_index"), num_items_++);
    element item;
    ASSERT_FALSE(data["item"].get(item));
    ClientAnswer one;
    append_item(item, one);
    EXPECT_EQ(is_message_ ? one.text : one.calls.back().arguments, pieces_);
    append_item(item, answer);
    items_ += (items_.empty() ? "" : ",") + std::string(simdjson::minify(item));
  }
  void end_response(element data) {
    EXPECT_TRUE(item_id_.empty());
    EXPECT_EQ(json_of(data, "/response/output"), "[" + items_ + "]");
    number(data, "/response/usage/total_tokens");
    answer.end = member(data, "/response/status");
  }

  std::int64_t num_events_ = 0, num_items_ = 0;
  std::string item_id_;  // of the item that is open
  std::string pieces_;   // of it
  std::string items_;    // that are whole
  bool is_message_ = false;
};

bool is_of(std::string_view path, std::string_view endpoint) {
  return path.substr(0, path.find('?')).ends_with(endpoint);
}

bool is_ollama(std::string_view path) { return path.starts_with("/api/"); }
bool is_llama(std::string_view path) { return path == "/completion" || path == "/infill"; }

void append_ollama_calls(element json, ClientAnswer& answer) {
  simdjson::dom::array calls;
  if (json.at_pointer("/message/tool_calls").get(calls)) return;
  for (const element call : calls) {
    answer.calls.push_back({.id = member(call, "/id"),
                            .name = member(call, "/function/name"),
                            .space = {},
                            .arguments = json_of(call, "/function/arguments")});
  }
}

ClientAnswer whole_ollama(element json) {
  EXPECT_EQ(json_of(json, "/done"), "true");
  ClientAnswer answer{.text = member_or_empty(json, "/message/content") + member_or_empty(json, "/response"),
                      .calls = {},
                      .end = member(json, "/done_reason")};
  append_ollama_calls(json, answer);
  return answer;
}

ClientAnswer whole_llama(element json) {
  return {.text = member_or_empty(json, "/content"), .calls = {}, .end = member_or_empty(json, "/stop_type")};
}

class OllamaStream final : public StreamReader {
 public:
  void take(const std::string&, element data) override {
    EXPECT_TRUE(answer.end.empty()) << "a line after the last";
    answer.text += member_or_empty(data, "/message/content") + member_or_empty(data, "/response");
    append_ollama_calls(data, answer);
    if (json_of(data, "/done") == "true") answer.end = member(data, "/done_reason");
  }
  void end() override { EXPECT_FALSE(answer.end.empty()) << "no done_reason"; }
};

// A client that wants some members alone of the answer gets no end.
class LlamaStream final : public StreamReader {
 public:
  void take(const std::string& name, element data) override {
    EXPECT_EQ(name, "");
    EXPECT_FALSE(is_over_) << "an event after the last";
    answer.text += member_or_empty(data, "/content");
    is_over_ = json_of(data, "/stop") != "false";
    if (is_over_) answer.end = member_or_empty(data, "/stop_type");
  }
  void end() override { EXPECT_TRUE(is_over_); }

 private:
  bool is_over_ = false;
};

std::unique_ptr<StreamReader> stream_reader(std::string_view path) {
  if (is_ollama(path)) return std::make_unique<OllamaStream>();
  if (is_llama(path)) return std::make_unique<LlamaStream>();
  if (is_of(path, "/messages")) return std::make_unique<MessagesStream>();
  if (is_of(path, "/responses")) return std::make_unique<ResponsesStream>();
  return std::make_unique<ChatStream>();
}

}  // namespace

ClientAnswer read_whole_answer(std::string_view path, const std::string& body) {
  simdjson::dom::parser parser;
  element json;
  if (parser.parse(body).get(json)) {
    ADD_FAILURE() << "no JSON: " << body;
    return {};
  }
  if (is_ollama(path)) return whole_ollama(json);
  if (is_llama(path)) return whole_llama(json);
  if (is_of(path, "/messages")) return whole_message(json);
  if (is_of(path, "/responses")) return whole_response(json);
  return is_of(path, "/chat/completions") ? whole_chat(json) : whole_completion(json);
}

ClientAnswer read_streamed_answer(std::string_view path, const std::string& body) {
  const std::unique_ptr<StreamReader> reader = stream_reader(path);
  simdjson::dom::parser parser;
  std::string name;
  bool is_done = false;
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = std::min(body.find('\n', begin), body.size());
    const std::string line = body.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("event: ")) name = line.substr(7);
    if (!is_ollama(path) && !line.starts_with("data: ")) continue;
    EXPECT_FALSE(is_done) << line;
    const std::string data = is_ollama(path) ? line : line.substr(6);
    is_done = data == "[DONE]";
    element json;
    if (is_done) continue;
    if (parser.parse(data).get(json)) {
      ADD_FAILURE() << "no JSON: " << data;
      continue;
    }
    reader->take(std::exchange(name, {}), json);
  }
  reader->end();
  return std::move(reader->answer);
}

}  // namespace kvasir::server
