#include "server/api/tool_calls.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace kvasir::server::api {
namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

// A form in which calls are all that an answer says.
struct WholeAnswer {
  std::string_view mark;  // that it may begin with
  char first;             // character behind that
  std::string_view between_objects;
};
constexpr WholeAnswer kObjects{.mark = "<|python_tag|>", .first = '{', .between_objects = " \t\r\n;"};
constexpr WholeAnswer kArrayOfObjects{.mark = "[TOOL_CALLS]", .first = '[', .between_objects = " \t\r\n,[]"};

const WholeAnswer& whole_answer_of(ToolCallFormat format) {
  return format == ToolCallFormat::kArray ? kArrayOfObjects : kObjects;
}

// How much of the text's end may be the beginning of `mark`.
std::size_t partial_match(std::string_view text, std::string_view mark) {
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (text.ends_with(mark.substr(0, length))) return length;
  }
  return 0;
}

std::string_view trimmed(std::string_view text, std::string_view what) {
  const std::size_t first = text.find_first_not_of(what);
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// The length of the JSON object that the text begins with; 0 when it has no end.
std::size_t object_length(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

std::optional<ToolCall> parse_call(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view name, text;
  if (parser.parse(simdjson::padded_string(json)).get(root) != simdjson::SUCCESS) return std::nullopt;
  if (root["name"].get(name) != simdjson::SUCCESS) return std::nullopt;
  ToolCall call{.name = std::string(name), .arguments = "{}"};
  simdjson::dom::element arguments;
  if (root["arguments"].get(arguments) == simdjson::SUCCESS ||
      root["parameters"].get(arguments) == simdjson::SUCCESS) {
    // Some write the object as a string already.
    call.arguments =
        arguments.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(arguments);
  }
  return call;
}

}  // namespace

ToolCallFormat tool_call_format_of(std::string_view template_source) {
  const auto has = [&](std::string_view what) {
    return template_source.find(what) != std::string_view::npos;
  };
  if (!has("tools")) return ToolCallFormat::kNone;
  if (has(kOpen)) return ToolCallFormat::kTagged;
  if (has(kArrayOfObjects.mark)) return ToolCallFormat::kArray;
  if (has("\"parameters\"")) return ToolCallFormat::kObject;
  return ToolCallFormat::kNone;
}

ToolCallReader::Piece ToolCallReader::push(std::string_view text) {
  Piece piece;
  if (format_ == ToolCallFormat::kNone || is_text_) {
    piece.text = text;
    return piece;
  }
  held_ += text;
  if (format_ == ToolCallFormat::kTagged) {
    read_tagged(piece);
  } else if (!may_be_objects()) {
    is_text_ = true;
    piece.text = std::exchange(held_, {});
  }
  return piece;
}

ToolCallReader::Piece ToolCallReader::finish() {
  Piece piece;
  if (held_.empty()) return piece;
  const bool is_call =
      format_ == ToolCallFormat::kTagged
          ? held_.starts_with(kOpen) && take_call(std::string_view(held_).substr(kOpen.size()), piece)
          : take_objects(held_, piece);
  if (!is_call) piece.text = held_;
  held_.clear();
  return piece;
}

ToolCallReader::Piece ToolCallReader::read_whole(std::string_view text) {
  Piece whole = push(text);
  Piece rest = finish();
  whole.text += rest.text;
  std::ranges::move(rest.calls, std::back_inserter(whole.calls));
  return whole;
}

void ToolCallReader::read_tagged(Piece& piece) {
  for (;;) {
    if (skips_space_) {
      held_ = trimmed(held_, kSpace);
      skips_space_ = held_.empty();
    }
    const std::size_t open = held_.find(kOpen);
    const std::size_t end_of_text =
        open != std::string::npos ? open : held_.size() - partial_match(held_, kOpen);
    piece.text += std::string_view(held_).substr(0, end_of_text);
    held_.erase(0, end_of_text);
    const std::size_t close = held_.find(kClose);
    if (open == std::string::npos || close == std::string::npos) return;
    const std::size_t end = close + kClose.size();
    skips_space_ = take_call(std::string_view(held_).substr(kOpen.size(), close - kOpen.size()), piece);
    if (!skips_space_) piece.text += std::string_view(held_).substr(0, end);
    held_.erase(0, end);
  }
}

bool ToolCallReader::may_be_objects() const {
  const WholeAnswer& form = whole_answer_of(format_);
  std::string_view text = trimmed(held_, kSpace);
  if (text.starts_with(form.mark)) text = trimmed(text.substr(form.mark.size()), kSpace);
  return text.empty() || text.starts_with(form.first) || form.mark.starts_with(text);
}

bool ToolCallReader::take_objects(std::string_view text, Piece& piece) {
  const WholeAnswer& form = whole_answer_of(format_);
  text = trimmed(text, kSpace);
  if (text.starts_with(form.mark)) text.remove_prefix(form.mark.size());
  text = trimmed(text, form.between_objects);
  if (text.empty()) return false;
  const std::int32_t num_before = num_calls_;
  while (!text.empty()) {
    const std::size_t length = object_length(text);
    if (length == 0 || !take_call(text.substr(0, length), piece)) {
      piece.calls.clear();
      num_calls_ = num_before;
      return false;
    }
    text = trimmed(text.substr(length), form.between_objects);
  }
  return true;
}

bool ToolCallReader::take_call(std::string_view json, Piece& piece) {
  auto call = parse_call(json);
  if (!call || !is_tool(call->name)) return false;
  if (num_calls_ == max_calls_) return true;
  piece.calls.push_back(std::move(*call));
  ++num_calls_;
  return true;
}

bool ToolCallReader::is_tool(std::string_view name) const {
  return std::ranges::find(tool_names_, name) != tool_names_.end();
}

}  // namespace kvasir::server::api
