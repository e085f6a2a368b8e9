// Splits an answer into text, reasoning and calls of tools.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/call_parser.h"
#include "server/api/tool_calls/tool_call_syntax.h"
#include "server/api/tool_calls/tool_signature.h"
#include "server/observe/tool_call_counts.h"

namespace kvasir::server::api {

enum class ReasoningForm : std::uint8_t {
  kSplit,    // parts of their own
  kLeftOut,  // nobody sees it
  kText,     // text like all other, with its marks
};

// How the answers to one request are to be read.
struct ToolCallReading {
  const ToolCallSyntax* syntax = nullptr;  // null: all is text
  std::vector<ToolSignature> tools;        // whose calls count; empty: none is looked for
  // The marks of the model's own reasoning. Those of other models only keep calls from being found.
  std::vector<ReasoningMarks> reasoning_marks = {};
  std::vector<ReasoningMarks> answer_marks = {};  // that it puts around its answer then
  ReasoningForm reasoning_form = ReasoningForm::kSplit;
  std::int32_t max_calls = std::numeric_limits<std::int32_t>::max();
  bool starts_in_reasoning = false;
  std::string prompt_mark;  // the mark of a call with which the prompt ends; empty: none
  // Texts of control tokens that the engine shows to the reader, and the client is not to see.
  std::vector<std::string> hidden_marks;
  observe::ToolCallCounts* counts = nullptr;  // of the calls that clients get; borrowed
};

// In the order of observe::kCallEndNames.
enum class CallEnd : std::uint8_t {
  kComplete,
  kCut,     // the answer ended first
  kBroken,  // it was no call after all; its text follows
};

// A piece of an answer.
struct AnswerPart {
  enum class Kind : std::uint8_t { kText, kReasoning, kCall, kArguments, kCallEnd };
  Kind kind = Kind::kText;
  std::string text;  // kCall: the tool's name; kArguments: a part of the JSON
  CallEnd end = CallEnd::kComplete;
};

// Reads an answer as it comes. A call is told as soon as the tool's name and the beginning of its arguments
// are there, its arguments then piece by piece. What only looks like a call comes out as text, unchanged but
// for hidden marks. Between the marks of reasoning there are no calls. The model's own reasoning is split off where
// the answer begins with it, or its mark is a control token; blanks at its ends, and behind it, are left out.
//
// Thread safety: none; each choice has one. Invariant: the parts, joined, do not depend on how the answer is
// cut into pieces.
class ToolCallReader {
 public:
  using Parts = std::vector<AnswerPart>;

  // Both are borrowed. `counts`: where calls are counted; null: nowhere.
  explicit ToolCallReader(const ToolCallReading& reading, observe::ToolCallCounts* counts = nullptr);

  // Appends what the answer's next piece gives. Text that may be the beginning of a call waits.
  void push(std::string_view text, Parts& parts);
  // The answer is over.
  void finish(Parts& parts);
  // Whether what comes next is reasoning that is no text.
  bool is_in_reasoning() const { return state_ == State::kReasoning && is_split_; }
  // Whether calls are what the answer ends with: there is one, and none was cut.
  bool ends_with_calls() const { return num_calls_ > 0 && !is_cut_; }

 private:
  enum class State : std::uint8_t { kText, kReasoning, kOpening, kCall, kBetween };
  enum class Meaning : std::uint8_t {
    kSection,
    kOpen,
    kReasoning,
    kEndOfReasoning,
    kHidden,
    kAnswer,
    kEndOfAnswer,
  };
  struct Mark {
    std::string_view text;
    Meaning meaning;
  };
  struct Found {
    std::size_t begin = 0;
    const Mark* mark = nullptr;  // null: what follows `begin` may become one
  };

  void add_mark(std::string_view text, Meaning meaning, std::vector<Mark>& marks);
  void add_text_marks();
  void begin_in_reasoning();
  void run(bool is_end, Parts& parts);
  bool scan(bool is_end, Parts& parts);
  Found find_mark(std::string_view text, bool is_end) const;
  bool begins_bare(std::string_view text, bool is_end, bool& waits);
  bool begins_with_tool(std::string_view text, bool is_end, bool& waits) const;
  void take_mark(const Mark& mark, Parts& parts);
  void begin_reasoning(const Mark& mark, Parts& parts);
  void end_reasoning(const Mark& mark, Parts& parts);
  void take_answer_mark(const Mark& mark, Parts& parts);
  void begin_section(const Mark& mark, Parts& parts);
  void step_opening(char byte, Parts& parts);
  void step_call(char byte, Parts& parts);
  void step_between(char byte, Parts& parts);
  bool take_between(Parts& parts);
  bool continues_list(char byte) const;
  void begin_call(char byte, Parts& parts);
  void report(Parts& parts);
  void end_call(CallEnd end, Parts& parts);
  void count(CallEnd end) {
    if (counts_ != nullptr) ++counts_->by_end[static_cast<std::size_t>(end)];
  }
  void leave(Parts& parts);
  bool is_hidden(std::string_view mark) const;
  bool is_models_reasoning(std::string_view open) const;
  bool reads_calls() const { return !reading_.tools.empty(); }
  void append_text(std::string_view text, Parts& parts);
  void append_reasoning(std::string_view text, Parts& parts);
  void release_blanks(Parts& parts);

  const ToolCallReading& reading_;
  observe::ToolCallCounts* counts_;
  std::vector<Mark> text_marks_;
  std::vector<Mark> reasoning_marks_;  // inside of one kind of reasoning
  std::string first_bytes_, first_reasoning_bytes_;
  State state_ = State::kText;
  std::string input_;  // not read yet
  std::size_t position_ = 0;
  bool is_at_start_ = true;  // nothing but blanks and reasoning so far

  bool is_split_ = false;          // kReasoning: it is no text
  bool has_thought_ = false;       // some reasoning was told
  bool is_thought_begun_ = false;  // of this block
  std::string thought_blanks_;     // at its end, so far
  // Blanks at the answer's beginning wait: reasoning may follow. Those behind reasoning are dropped.
  bool holds_blanks_ = false;
  bool drops_blanks_ = false;
  std::string blanks_;
  bool is_in_answer_ = false;  // behind a mark of the answer

  std::string raw_;  // of the call that is being read, or since the last one
  std::size_t raw_mark_bytes_ = 0;
  std::string rest_;              // kBetween: not told yet
  bool has_call_ = false;         // kBetween: behind one
  bool is_bare_ = false;          // no mark came
  bool is_prompts_mark_ = false;  // raw_ begins with a mark that is the prompt's
  bool is_inside_ = false;        // behind a mark, before the one that closes it
  bool is_in_list_ = false;       // behind a bracket
  std::unique_ptr<CallParser> parser_;
  bool is_reported_ = false;
  bool is_muted_ = false;  // beyond the calls that count
  std::int32_t num_calls_ = 0;
  bool is_cut_ = false;
};

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON, unless the answer ended first
  bool is_complete = true;
};

// An answer that is there at once.
struct ReadAnswer {
  std::string text;
  std::string reasoning;
  std::vector<ToolCall> calls;
  bool ends_with_calls = false;
};
ReadAnswer read_answer(const ToolCallReading& reading, std::string_view text);

}  // namespace kvasir::server::api
