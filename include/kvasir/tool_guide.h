// An answer that calls tools in the way its model was taught.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kvasir {

struct GuideTool {
  std::string name = {};
  // JSON Schema of the arguments, which are an object; empty: any object.
  std::string schema = {};
  // Arguments whose values are texts whatever they look like, where the model writes values without quotes.
  std::vector<std::string> text_arguments = {};
};

// Calls of these tools, perhaps behind thoughts. A text goes before them, or is the whole answer, unless a call is
// demanded.
struct ToolGuide {
  std::string family = {};  // one of the families in src/grammar/tags/tool_call_syntax.cc
  std::vector<GuideTool> tools = {};
  bool is_demanded = true;  // the answer has a call and no text
  bool is_parallel = true;  // there may be several calls
  // What stands before and behind a block of thoughts with which the answer may begin.
  std::vector<std::pair<std::string, std::string>> thoughts = {};
  bool starts_in_thoughts = false;  // the prompt has opened a block
  std::string prompt_mark = {};     // the mark of a call with which the prompt ends; empty: none
};

}  // namespace kvasir
