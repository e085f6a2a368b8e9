// Any text as a model's answer: its calls, reasoning and text are the same however the stream is cut.
#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "server/api/tool_calls/tool_call_reader.h"

namespace {

using namespace kvasir::server::api;

struct JoinedAnswer {
  std::string text;
  std::string reasoning;
  std::string calls;  // names, arguments and ends, one behind the other
  bool ends_with_calls = false;

  bool operator==(const JoinedAnswer&) const = default;
};

// A call that is told as complete has arguments that any client can parse.
void check_arguments(std::string_view json) {
  thread_local simdjson::dom::parser parser;
  simdjson::dom::element element;
  const auto error = parser.parse(simdjson::padded_string(json)).get(element);
  // Numbers beyond 64 bits are JSON nevertheless.
  if (error == simdjson::NUMBER_ERROR || error == simdjson::DEPTH_ERROR) return;
  const bool is_object = error == simdjson::SUCCESS && element.is_object();
  if (!is_object) std::fprintf(stderr, "no object: %.*s\n", static_cast<int>(json.size()), json.data());
  CHECK(is_object);
}

// Reads the answer in pieces of 1 to 8 bytes that `seed` chooses; 0: in one piece.
JoinedAnswer read(const ToolCallReading& reading, std::string_view answer, std::uint32_t seed) {
  ToolCallReader reader(reading);
  ToolCallReader::Parts parts;
  while (!answer.empty()) {
    seed = seed * 1664525 + (seed == 0 ? 0 : 1013904223);
    const std::size_t num_bytes = seed == 0 ? answer.size() : std::min<std::size_t>(1 + (seed >> 29), answer.size());
    reader.push(answer.substr(0, num_bytes), parts);
    answer.remove_prefix(num_bytes);
  }
  reader.finish(parts);
  JoinedAnswer joined;
  std::string arguments;
  bool is_in_call = false;
  for (const AnswerPart& part : parts) {
    switch (part.kind) {
      case AnswerPart::Kind::kText: joined.text += part.text; break;
      case AnswerPart::Kind::kReasoning: joined.reasoning += part.text; break;
      case AnswerPart::Kind::kCall:
        CHECK(!is_in_call && find_tool(reading.tools, part.text) != nullptr);
        is_in_call = true;
        arguments.clear();
        joined.calls += "\n" + part.text + " ";
        break;
      case AnswerPart::Kind::kArguments:
        CHECK(is_in_call);
        arguments += part.text;
        break;
      case AnswerPart::Kind::kCallEnd:
        CHECK(is_in_call);
        is_in_call = false;
        if (part.end == CallEnd::kComplete) check_arguments(arguments);
        joined.calls += arguments + (part.end == CallEnd::kComplete ? " whole" : " cut");
        break;
    }
  }
  CHECK(!is_in_call);
  joined.ends_with_calls = reader.ends_with_calls();
  return joined;
}

}  // namespace

// The first byte chooses the family, the second what else is read, the rest is the answer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view answer(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (!kvasir::is_valid_utf8(answer)) return 0;  // a tokenizer's stream has no other
  const auto syntaxes = tool_call_syntaxes();
  ToolCallReading reading;
  reading.syntax = &syntaxes[data[0] % syntaxes.size()];
  reading.tools = {{.name = "f", .arguments = {{"s", kStringType}, {"n", kNumberType}, {"o", kObjectType}}},
                   {.name = "get_weather", .arguments = {}}};
  if (data[1] & 1) reading.reasoning_marks.assign(reasoning_marks().begin(), reasoning_marks().end());
  if (data[1] & 2) reading.answer_marks.assign(answer_marks().begin(), answer_marks().end());
  reading.starts_in_reasoning = (data[1] & 1) && (data[1] & 4);
  if (data[1] & 8) reading.max_calls = 1;
  if (data[1] & 16) reading.reasoning_form = ReasoningForm::kText;
  const JoinedAnswer whole = read(reading, answer, 0);
  CHECK(read(reading, answer, static_cast<std::uint32_t>(size)) == whole);
  CHECK(read(reading, answer, data[0] * 256u + data[1] + 1) == whole);
  return 0;
}
