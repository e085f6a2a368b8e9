// A name, then elements within elements: <invoke name="N"><key>text</key><list><item>1</item></list></invoke>, with a
// mark before each tag.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kItem = "item";  // the name of a list's elements
constexpr std::size_t kMaxDepth = 64;

// The text between two tags, or within one.
struct Element {
  std::string name;
  std::string text;
  std::vector<std::pair<std::string, std::string>> children;  // name, JSON
};

std::string list_json(const Element& element) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_array();
  for (const auto& [name, value] : element.children) writer.raw(value);
  writer.end_array();
  return json;
}

// Elements of one name are a list.
std::string object_json(const Element& element) {
  std::vector<std::pair<std::string, std::vector<std::string>>> members;
  for (const auto& [name, value] : element.children) {
    auto member = std::ranges::find(members, name, &std::pair<std::string, std::vector<std::string>>::first);
    if (member == members.end()) member = members.insert(members.end(), {name, {}});
    member->second.push_back(value);
  }
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  for (const auto& [name, values] : members) {
    writer.key(name);
    if (values.size() == 1) {
      writer.raw(values.front());
      continue;
    }
    writer.begin_array();
    for (const std::string& value : values) writer.raw(value);
    writer.end_array();
  }
  writer.end_object();
  return json;
}

std::string json_of(const Element& element, JsonTypes types) {
  if (element.children.empty()) {
    const bool is_blank = without_blanks(element.text).empty();
    if (is_blank && types == kArrayType) return "[]";
    if (is_blank && types == kObjectType) return "{}";
    return typed_json(element.text, types);
  }
  const bool are_items = std::ranges::all_of(element.children,
                                             [](const auto& child) { return child.first == kItem; });
  return are_items && types != kObjectType ? list_json(element) : object_json(element);
}

class NestedCall final : public CallParser {
 public:
  NestedCall(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools) : CallParser(syntax, tools) {}

  TextStep step(char byte) override;

 private:
  enum class State : std::uint8_t { kOpen, kName, kText, kTag };

  TextStep step_open();
  TextStep step_name();
  TextStep step_text();
  TextStep step_tag();
  TextStep take_tag(std::string_view name);
  TextStep end_element(std::string_view name);

  State state_ = State::kOpen;
  std::string held_;  // not decided yet
  std::size_t num_arguments_ = 0;
  std::vector<Element> open_;
};

TextStep NestedCall::step(char byte) {
  held_ += byte;
  switch (state_) {
    case State::kOpen:
      return step_open();
    case State::kName:
      return step_name();
    case State::kText:
      return step_text();
    case State::kTag:
      break;
  }
  return step_tag();
}

TextStep NestedCall::step_open() {
  if (is_call_blank(held_.front())) held_.clear();
  if (held_.empty()) return TextStep::kMore;
  if (!syntax_.call_open.starts_with(held_)) return TextStep::kBad;
  if (held_.size() < syntax_.call_open.size()) return TextStep::kMore;
  held_.clear();
  state_ = State::kName;
  return TextStep::kMore;
}

TextStep NestedCall::step_name() {
  if (held_.size() > kMaxNameBytes) return TextStep::kBad;
  if (!held_.ends_with(syntax_.name_close)) return TextStep::kMore;
  if (!set_tool(without_blanks(held_.substr(0, held_.size() - syntax_.name_close.size())))) return TextStep::kBad;
  held_.clear();
  state_ = State::kText;
  return TextStep::kMore;
}

// Up to the mark of the next tag. Outside of elements there are only blanks.
TextStep NestedCall::step_text() {
  const bool is_tag = held_.ends_with(syntax_.tag_mark);
  const std::size_t num_held = is_tag ? syntax_.tag_mark.size() : partial_mark(held_, syntax_.tag_mark);
  const std::string_view text = std::string_view(held_).substr(0, held_.size() - num_held);
  if (open_.empty() && !without_blanks(text).empty()) return TextStep::kBad;
  if (!open_.empty()) open_.back().text += text;
  held_.erase(0, text.size());
  if (!is_tag) return TextStep::kMore;
  held_.clear();
  state_ = State::kTag;
  return TextStep::kMore;
}

TextStep NestedCall::step_tag() {
  if (held_.size() > kMaxNameBytes || held_.front() != '<') return TextStep::kBad;
  if (!held_.ends_with('>')) return TextStep::kMore;
  const std::string tag = std::exchange(held_, {});
  state_ = State::kText;
  return take_tag(std::string_view(tag).substr(1, tag.size() - 2));
}

TextStep NestedCall::take_tag(std::string_view name) {
  const std::string_view call_close = syntax_.call_close.substr(syntax_.tag_mark.size());
  if (open_.empty() && call_close.substr(1, call_close.size() - 2) == name) {
    has_begun_ = true;
    arguments_ += num_arguments_ == 0 ? "{}" : "}";
    return TextStep::kDone;
  }
  if (name.starts_with('/')) return end_element(name.substr(1));
  if (name.empty() || open_.size() == kMaxDepth) return TextStep::kBad;
  has_begun_ = true;
  open_.push_back({.name = std::string(name), .text = {}, .children = {}});
  return TextStep::kMore;
}

TextStep NestedCall::end_element(std::string_view name) {
  if (open_.empty() || open_.back().name != name) return TextStep::kBad;
  const Element element = std::move(open_.back());
  open_.pop_back();
  const std::string json = json_of(element, open_.empty() ? tool_->types_of(name) : kAnyType);
  if (!open_.empty()) {
    open_.back().children.emplace_back(element.name, json);
    return TextStep::kMore;
  }
  arguments_ += num_arguments_++ == 0 ? '{' : ',';
  JsonWriter(arguments_).value(name);
  arguments_ += ':' + json;
  return TextStep::kMore;
}

}  // namespace

std::unique_ptr<CallParser> make_nested_call(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools) {
  return std::make_unique<NestedCall>(syntax, tools);
}

}  // namespace kvasir::server::api
