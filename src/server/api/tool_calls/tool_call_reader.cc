#include "server/api/tool_calls/tool_call_reader.h"

#include <algorithm>
#include <utility>

namespace kvasir::server::api {
namespace {

// That may come before it is sure that a call begins. A mark in every word would take too long otherwise.
constexpr std::size_t kMaxUnsureBytes = std::size_t{16} << 10;

std::string first_bytes_of(const auto& marks) {
  std::string bytes;
  for (const auto& mark : marks) {
    if (!bytes.contains(mark.text.front())) bytes += mark.text.front();
  }
  return bytes;
}

constexpr std::string_view kBlanks = " \t\r\n";

void append_piece(AnswerPart::Kind kind, std::string_view text, ToolCallReader::Parts& parts) {
  if (text.empty()) return;
  if (parts.empty() || parts.back().kind != kind) parts.push_back({.kind = kind, .text = {}});
  parts.back().text += text;
}

bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

ToolCallReader::ToolCallReader(const ToolCallReading& reading, observe::ToolCallCounts* counts)
    : reading_(reading), counts_(counts) {
  if (reading.syntax == nullptr) return;
  add_text_marks();
  first_bytes_ = first_bytes_of(text_marks_);
  holds_blanks_ = !reading.reasoning_marks.empty();
  if (reading.starts_in_reasoning) {
    begin_in_reasoning();
  } else {
    input_ = reading.prompt_mark;
    is_prompts_mark_ = !input_.empty();
  }
}

void ToolCallReader::add_text_marks() {
  const ToolCallSyntax& syntax = *reading_.syntax;
  if (reads_calls()) {
    add_mark(syntax.section_open, Meaning::kSection, text_marks_);
    for (const std::string_view mark : syntax.open) add_mark(mark, Meaning::kOpen, text_marks_);
  }
  for (const ReasoningMarks& marks : reading_.reasoning_marks) {
    add_mark(marks.open, Meaning::kReasoning, text_marks_);
  }
  if (reads_calls()) {
    for (const ReasoningMarks& marks : api::reasoning_marks()) {
      add_mark(marks.open, Meaning::kReasoning, text_marks_);
    }
  }
  for (const ReasoningMarks& marks : reading_.answer_marks) {
    add_mark(marks.open, Meaning::kAnswer, text_marks_);
    add_mark(marks.close, Meaning::kEndOfAnswer, text_marks_);
  }
  for (const std::string_view mark : syntax.frame) add_mark(mark, Meaning::kHidden, text_marks_);
  for (const std::string& mark : reading_.hidden_marks) add_mark(mark, Meaning::kHidden, text_marks_);
}

// The prompt has opened a block. Some models open it once more.
void ToolCallReader::begin_in_reasoning() {
  state_ = State::kReasoning;
  is_split_ = !reading_.reasoning_marks.empty() && reading_.reasoning_form != ReasoningForm::kText;
  const bool is_known = !reading_.reasoning_marks.empty();
  const std::span<const ReasoningMarks> kinds = is_known ? reading_.reasoning_marks : api::reasoning_marks();
  for (const ReasoningMarks& marks : kinds) {
    add_mark(marks.close, Meaning::kEndOfReasoning, reasoning_marks_);
    if (is_split_) add_mark(marks.open, Meaning::kReasoning, reasoning_marks_);
  }
  for (const std::string& mark : reading_.hidden_marks) add_mark(mark, Meaning::kHidden, reasoning_marks_);
  first_reasoning_bytes_ = first_bytes_of(reasoning_marks_);
}

// The first of equal marks counts.
void ToolCallReader::add_mark(std::string_view text, Meaning meaning, std::vector<Mark>& marks) {
  if (!text.empty() && std::ranges::find(marks, text, &Mark::text) == marks.end()) {
    marks.push_back({text, meaning});
  }
}

void ToolCallReader::push(std::string_view text, Parts& parts) {
  if (reading_.syntax == nullptr) return append_text(text, parts);
  input_ += text;
  run(false, parts);
}

void ToolCallReader::finish(Parts& parts) {
  if (reading_.syntax == nullptr) return;
  for (;;) {
    run(true, parts);
    if (state_ == State::kText || state_ == State::kReasoning) return release_blanks(parts);
    if (state_ == State::kBetween && has_call_ && rest_.empty()) return;
    if (state_ == State::kCall && parser_->finish()) {
      report(parts);
      end_call(CallEnd::kComplete, parts);
    } else if (state_ == State::kCall && is_reported_) {
      return end_call(CallEnd::kCut, parts);
    } else {
      leave(parts);
    }
  }
}

void ToolCallReader::run(bool is_end, Parts& parts) {
  while (position_ < input_.size()) {
    if (state_ == State::kText || state_ == State::kReasoning) {
      if (!scan(is_end, parts)) break;
      continue;
    }
    const char byte = input_[position_++];
    raw_ += byte;
    if (state_ == State::kOpening) {
      step_opening(byte, parts);
    } else if (state_ == State::kCall) {
      step_call(byte, parts);
    } else {
      step_between(byte, parts);
    }
  }
  input_.erase(0, position_);
  position_ = 0;
}

// Text up to the next mark. False: the rest waits.
bool ToolCallReader::scan(bool is_end, Parts& parts) {
  const std::string_view text = std::string_view(input_).substr(position_);
  if (state_ == State::kText && is_at_start_ && reads_calls() && reading_.syntax->may_be_bare) {
    bool waits = false;
    if (begins_bare(text, is_end, waits)) return true;
    if (waits) return false;
  }
  const Found found = find_mark(text, is_end);
  const std::string_view before = text.substr(0, found.begin);
  if (state_ == State::kText && before.find_first_not_of(kBlanks) != std::string_view::npos) {
    is_at_start_ = false;
  }
  position_ += found.begin;
  append_text(before, parts);
  if (found.mark == nullptr) return false;
  position_ += found.mark->text.size();
  take_mark(*found.mark, parts);
  return true;
}

// The first mark, and the longest that begins there.
ToolCallReader::Found ToolCallReader::find_mark(std::string_view text, bool is_end) const {
  const bool is_reasoning = state_ == State::kReasoning;
  const std::vector<Mark>& marks = is_reasoning ? reasoning_marks_ : text_marks_;
  const std::string& first_bytes = is_reasoning ? first_reasoning_bytes_ : first_bytes_;
  for (std::size_t begin = 0;; ++begin) {
    begin = text.find_first_of(first_bytes, begin);
    if (begin == std::string_view::npos) return {text.size(), nullptr};
    const std::string_view rest = text.substr(begin);
    const Mark* best = nullptr;
    bool may_be_longer = false;
    for (const Mark& mark : marks) {
      if (rest.starts_with(mark.text)) {
        if (best == nullptr || mark.text.size() > best->text.size()) best = &mark;
      } else if (mark.text.starts_with(rest)) {
        may_be_longer = true;
      }
    }
    if (may_be_longer && !is_end) return {begin, nullptr};
    if (best != nullptr) return {begin, best};
  }
}

// At the answer's beginning: a call without a mark.
bool ToolCallReader::begins_bare(std::string_view text, bool is_end, bool& waits) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    waits = !is_end;
    return false;
  }
  const std::string_view rest = text.substr(first);
  for (const Mark& mark : text_marks_) {
    if (rest.starts_with(mark.text)) return false;
    if (mark.text.starts_with(rest) && !is_end) {
      waits = true;
      return false;
    }
  }
  const ToolCallLayout layout = reading_.syntax->layout;
  const bool is_call = layout == ToolCallLayout::kNamedJson
                           ? begins_with_tool(rest, is_end, waits)
                           : (rest.front() == '{' && layout == ToolCallLayout::kJson) ||
                                 (rest.front() == '[' && reading_.syntax->may_be_list);
  if (!is_call) return false;
  is_at_start_ = false;
  is_bare_ = true;
  raw_.clear();
  raw_mark_bytes_ = 0;
  state_ = State::kOpening;
  return true;
}

// Whether its first line is a tool's name.
bool ToolCallReader::begins_with_tool(std::string_view text, bool is_end, bool& waits) const {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = without_blanks(text.substr(0, end));
  if (end < text.size()) return find_tool(reading_.tools, line) != nullptr;
  const auto may_become = [&](const ToolSignature& tool) { return tool.name.starts_with(line); };
  waits = !is_end && std::ranges::any_of(reading_.tools, may_become);
  return false;
}

void ToolCallReader::take_mark(const Mark& mark, Parts& parts) {
  switch (mark.meaning) {
    case Meaning::kHidden:
      return;
    case Meaning::kReasoning:
      return begin_reasoning(mark, parts);
    case Meaning::kEndOfReasoning:
      return end_reasoning(mark, parts);
    case Meaning::kAnswer:
    case Meaning::kEndOfAnswer:
      return take_answer_mark(mark, parts);
    case Meaning::kSection:
    case Meaning::kOpen:
      return begin_section(mark, parts);
  }
}

void ToolCallReader::begin_reasoning(const Mark& mark, Parts& parts) {
  if (state_ == State::kReasoning) {  // of the block that the prompt has opened
    if (is_thought_begun_) append_text(mark.text, parts);
    return;
  }
  is_split_ = reading_.reasoning_form != ReasoningForm::kText && is_models_reasoning(mark.text) &&
              (is_at_start_ || is_hidden(mark.text));
  state_ = State::kReasoning;
  reasoning_marks_.clear();
  for (const ReasoningMarks& marks : api::reasoning_marks()) {
    if (marks.open == mark.text) add_mark(marks.close, Meaning::kEndOfReasoning, reasoning_marks_);
  }
  for (const std::string& hidden : reading_.hidden_marks) add_mark(hidden, Meaning::kHidden, reasoning_marks_);
  first_reasoning_bytes_ = first_bytes_of(reasoning_marks_);
  if (is_split_) {
    is_thought_begun_ = false;
    blanks_.clear();
  } else if (!is_hidden(mark.text)) {
    append_text(mark.text, parts);
  }
}

void ToolCallReader::end_reasoning(const Mark& mark, Parts& parts) {
  state_ = State::kText;
  if (std::exchange(is_split_, false)) {
    thought_blanks_.clear();
    holds_blanks_ = drops_blanks_ = is_at_start_;
  } else if (!is_hidden(mark.text)) {
    append_text(mark.text, parts);
  }
}

// They count behind reasoning alone; elsewhere they are what somebody wrote.
void ToolCallReader::take_answer_mark(const Mark& mark, Parts& parts) {
  const bool is_open = mark.meaning == Meaning::kAnswer;
  const bool counts = is_open ? drops_blanks_ && holds_blanks_ : is_in_answer_;
  if (!counts) return append_text(mark.text, parts);
  is_in_answer_ = is_open;
  if (is_open) blanks_.clear();
}

void ToolCallReader::begin_section(const Mark& mark, Parts& parts) {
  is_at_start_ = false;
  raw_ = mark.text;
  raw_mark_bytes_ = mark.text.size();
  rest_.clear();
  has_call_ = is_bare_ = is_in_list_ = false;
  is_inside_ = mark.meaning == Meaning::kOpen;
  state_ = is_inside_ ? State::kOpening : State::kBetween;
  if (!is_inside_ || mark.text != reading_.syntax->call_open) return;
  for (const char byte : mark.text) begin_call(byte, parts);  // the mark is a part of the call
}

void ToolCallReader::step_opening(char byte, Parts& parts) {
  if (is_call_blank(byte)) return;
  if (byte == '[' && reading_.syntax->may_be_list && !is_in_list_) {
    is_in_list_ = true;
    return;
  }
  begin_call(byte, parts);
}

void ToolCallReader::begin_call(char byte, Parts& parts) {
  if (state_ != State::kCall) {
    parser_ = make_call_parser(*reading_.syntax, reading_.tools, is_bare_);
    is_reported_ = false;
    is_muted_ = num_calls_ >= reading_.max_calls;
    state_ = State::kCall;
  }
  step_call(byte, parts);
}

void ToolCallReader::step_call(char byte, Parts& parts) {
  const TextStep step = parser_->step(byte);
  if (step == TextStep::kBad) return leave(parts);
  report(parts);
  if (!is_reported_ && raw_.size() > kMaxUnsureBytes) return leave(parts);
  if (step == TextStep::kMore) return;
  if (step == TextStep::kDoneBefore) {
    --position_;
    raw_.pop_back();
  }
  end_call(CallEnd::kComplete, parts);
}

// What is known of the call and was not told yet.
void ToolCallReader::report(Parts& parts) {
  if (!parser_->has_begun()) return;
  const bool is_new = !std::exchange(is_reported_, true);
  if (is_muted_) return parser_->arguments().clear();
  if (is_new) {
    release_blanks(parts);
    parts.push_back({.kind = AnswerPart::Kind::kCall, .text = parser_->name()});
  }
  std::string& arguments = parser_->arguments();
  if (arguments.empty()) return;
  if (parts.empty() || parts.back().kind != AnswerPart::Kind::kArguments) {
    parts.push_back({.kind = AnswerPart::Kind::kArguments, .text = {}});
  }
  parts.back().text += arguments;
  arguments.clear();
}

void ToolCallReader::end_call(CallEnd end, Parts& parts) {
  if (!is_muted_) {
    parts.push_back({.kind = AnswerPart::Kind::kCallEnd, .text = {}, .end = end});
    if (end == CallEnd::kComplete) ++num_calls_;
    if (end == CallEnd::kCut) is_cut_ = true;
    count(end);
  }
  parser_.reset();
  is_prompts_mark_ = false;
  raw_.clear();
  raw_mark_bytes_ = 0;
  rest_.clear();
  has_call_ = true;
  state_ = State::kBetween;
}

// Whether a call may come next without a mark of its own.
bool ToolCallReader::continues_list(char byte) const {
  if (!has_call_ || !(is_inside_ || is_in_list_ || is_bare_)) return false;
  const ToolCallLayout layout = reading_.syntax->layout;
  if (layout == ToolCallLayout::kJson || layout == ToolCallLayout::kKeyedJson) return byte == '{';
  return reading_.syntax->layout == ToolCallLayout::kPythonic && (is_inside_ || is_in_list_) &&
         is_name_start(byte);
}

// Between two calls, or before the first of a section.
void ToolCallReader::step_between(char byte, Parts& parts) {
  if (rest_.empty()) {
    if (is_call_blank(byte)) return;
    if (continues_list(byte)) return begin_call(byte, parts);
    if (has_call_ && byte == ']' && std::exchange(is_in_list_, false)) return;
    const bool is_json = reading_.syntax->layout == ToolCallLayout::kJson;
    const bool is_stray = byte == '}' && is_json && is_inside_;  // small models close too much
    const bool is_separator = byte == ',' || byte == ';';
    if (has_call_ && (is_stray || (is_separator && (is_inside_ || is_in_list_ || is_bare_)))) return;
  }
  rest_ += byte;
  if (!take_between(parts)) leave(parts);
}

// Takes the mark that rest_ is. False: it is none, nor may it become one.
bool ToolCallReader::take_between(Parts& parts) {
  const ToolCallSyntax& syntax = *reading_.syntax;
  for (const std::string_view mark : {syntax.close, syntax.section_close, syntax.after_arguments}) {
    if (rest_ != mark) continue;
    if (!has_call_) return false;
    if (mark != syntax.after_arguments) is_inside_ = is_in_list_ = is_bare_ = false;
    rest_.clear();
    return true;
  }
  bool may_be_mark = has_call_ && is_inside_ && syntax.call_open.starts_with(rest_);
  if (may_be_mark && rest_ == syntax.call_open) {
    for (const char byte : std::exchange(rest_, {})) begin_call(byte, parts);
    return true;
  }
  for (const Mark& mark : text_marks_) {
    const bool is_known = mark.meaning == Meaning::kOpen || mark.meaning == Meaning::kSection;
    if (is_known && rest_ == mark.text) {
      take_mark(mark, parts);
      return true;
    }
    may_be_mark = may_be_mark || (is_known && mark.text.starts_with(rest_));
  }
  for (const std::string_view mark : {syntax.close, syntax.section_close, syntax.after_arguments}) {
    may_be_mark = may_be_mark || mark.starts_with(rest_);
  }
  return may_be_mark;
}

// It is no call, or none any more: what was not told yet is read as text, in which others may begin.
void ToolCallReader::leave(Parts& parts) {
  if (state_ == State::kCall && is_reported_ && !is_muted_) {
    parts.push_back({.kind = AnswerPart::Kind::kCallEnd, .text = {}, .end = CallEnd::kBroken});
    count(CallEnd::kBroken);
  }
  std::string text = std::exchange(raw_, {});
  if (state_ == State::kBetween && has_call_) text = rest_;
  const std::string mark = text.substr(0, std::exchange(raw_mark_bytes_, 0));
  if (!std::exchange(is_prompts_mark_, false) && !is_hidden(mark)) append_text(mark, parts);
  input_.insert(position_, text, mark.size());
  parser_.reset();
  rest_.clear();
  state_ = State::kText;
}

// Also one of several tokens.
bool ToolCallReader::is_hidden(std::string_view mark) const {
  return std::ranges::any_of(reading_.hidden_marks,
                             [&](const std::string& hidden) { return mark.contains(hidden); });
}

bool ToolCallReader::is_models_reasoning(std::string_view open) const {
  return std::ranges::find(reading_.reasoning_marks, open, &ReasoningMarks::open) !=
         reading_.reasoning_marks.end();
}

void ToolCallReader::append_text(std::string_view text, Parts& parts) {
  if (state_ == State::kReasoning && is_split_) return append_reasoning(text, parts);
  if (holds_blanks_) {
    const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
    blanks_ += text.substr(0, first);
    text.remove_prefix(first);
    if (text.empty()) return;
    release_blanks(parts);
  }
  append_piece(AnswerPart::Kind::kText, text, parts);
}

void ToolCallReader::release_blanks(Parts& parts) {
  if (!drops_blanks_) append_piece(AnswerPart::Kind::kText, blanks_, parts);
  blanks_.clear();
  holds_blanks_ = drops_blanks_ = false;
}

// Blanks at the end of a block wait for what follows them. A second block stands on a line of its own.
void ToolCallReader::append_reasoning(std::string_view text, Parts& parts) {
  if (!is_thought_begun_) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    thought_blanks_ = has_thought_ ? "\n" : "";
  }
  const std::size_t last = text.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) {
    thought_blanks_ += text;
    return;
  }
  is_thought_begun_ = has_thought_ = true;
  if (reading_.reasoning_form == ReasoningForm::kSplit) {
    append_piece(AnswerPart::Kind::kReasoning, thought_blanks_, parts);
    append_piece(AnswerPart::Kind::kReasoning, text.substr(0, last + 1), parts);
  }
  thought_blanks_ = text.substr(last + 1);
}

ReadAnswer read_answer(const ToolCallReading& reading, std::string_view text) {
  ToolCallReader reader(reading, reading.counts);
  ToolCallReader::Parts parts;
  reader.push(text, parts);
  reader.finish(parts);
  ReadAnswer answer;
  for (AnswerPart& part : parts) {
    switch (part.kind) {
      case AnswerPart::Kind::kText:
        answer.text += part.text;
        break;
      case AnswerPart::Kind::kReasoning:
        answer.reasoning += part.text;
        break;
      case AnswerPart::Kind::kCall:
        answer.calls.push_back({.name = std::move(part.text), .arguments = {}, .is_complete = false});
        break;
      case AnswerPart::Kind::kArguments:
        answer.calls.back().arguments += part.text;
        break;
      case AnswerPart::Kind::kCallEnd:
        if (part.end == CallEnd::kBroken) answer.calls.pop_back();
        if (part.end == CallEnd::kComplete) answer.calls.back().is_complete = true;
        break;
    }
  }
  answer.ends_with_calls = reader.ends_with_calls();
  return answer;
}

}  // namespace kvasir::server::api
