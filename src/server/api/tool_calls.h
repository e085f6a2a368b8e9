// Tool calls in what a model writes.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::server::api {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON
};

// How a family of models writes them; its chat template tells.
enum class ToolCallFormat : std::uint8_t {
  kNone,    // the template shows no tools
  kTagged,  // <tool_call>{"name": "f", "arguments": {}}</tool_call> between text: Hermes, Qwen, SmolLM
  kObject,  // the whole answer is {"name": "f", "parameters": {}}, or several: Llama 3
  kArray,   // the whole answer is [{"name": "f", "arguments": {}}]: Mistral
};

ToolCallFormat tool_call_format_of(std::string_view template_source);

// Splits an answer into text and calls as it comes. Only what is a whole call of a tool that there is counts
// as one; what only looked like it comes out as text, unchanged.
//
// Thread safety: none; each choice has one.
class ToolCallReader {
 public:
  struct Piece {
    std::string text;
    std::vector<ToolCall> calls;
  };

  // `tool_names` is borrowed. Only the first `max_calls` calls count; later ones are left out.
  ToolCallReader(ToolCallFormat format, std::span<const std::string> tool_names,
                 std::int32_t max_calls = std::numeric_limits<std::int32_t>::max())
      : format_(format), tool_names_(tool_names), max_calls_(max_calls) {}

  // Text and calls in the answer's next piece. Text that may be the beginning of a call waits.
  Piece push(std::string_view text);
  // The answer is over.
  Piece finish();
  // An answer that is there at once.
  Piece read_whole(std::string_view text);
  // Calls so far.
  std::int32_t num_calls() const { return num_calls_; }

 private:
  void read_tagged(Piece& piece);
  bool take_call(std::string_view json, Piece& piece);
  bool take_objects(std::string_view text, Piece& piece);
  bool may_be_objects() const;
  bool is_tool(std::string_view name) const;

  const ToolCallFormat format_;
  const std::span<const std::string> tool_names_;
  const std::int32_t max_calls_;
  std::string held_;          // not decided yet
  bool is_text_ = false;      // kObject, kArray: this answer is no call
  bool skips_space_ = false;  // kTagged: what follows a call, up to the next text
  std::int32_t num_calls_ = 0;
};

}  // namespace kvasir::server::api
