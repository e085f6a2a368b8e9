#include "cli/markdown/markdown_renderer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/utf8.h"
#include "cli/markdown/display_width.h"

namespace kvasir::cli {
namespace {

using Kind = LineStart::Kind;

constexpr TextStyle kOrnament{.dim = true};
constexpr int kTabColumns = 4;
constexpr int kRuleColumns = 40;
constexpr std::size_t kCodeIndent = 4;              // CommonMark 0.31, section 4.4
constexpr std::size_t kMaxIndent = 16;              // of text; deeper lists are not read in a terminal
constexpr std::size_t kMaxCodeLineBytes = 1 << 16;  // a longer one becomes several

StyledText spaces(std::size_t count) { return {std::string(std::min(count, kMaxIndent), ' '), {}}; }

// Tabs to the next column that is a multiple of kTabColumns.
std::string without_tabs(std::string_view line) {
  std::string out;
  int column = 0;
  std::size_t begin = 0;
  for (std::size_t tab = 0; (tab = line.find('\t', begin)) != line.npos; begin = tab + 1) {
    const std::string_view piece = line.substr(begin, tab - begin);
    column += display_width(piece);
    const int num_spaces = kTabColumns - column % kTabColumns;
    out += piece;
    out.append(static_cast<std::size_t>(num_spaces), ' ');
    column += num_spaces;
  }
  return out += line.substr(begin);
}

}  // namespace

MarkdownRenderer::MarkdownRenderer(StyledOutput::ByteSink sink, Config config)
    : config_(std::move(config)),
      output_(std::move(sink), config_.colours),
      wrapper_(output_),
      inline_(wrapper_, !config_.colours),
      text_([this](std::string_view character) { take(character); }) {}

void MarkdownRenderer::write(std::string_view piece) {
  text_.write(piece);
  output_.flush();
}

void MarkdownRenderer::finish() {
  text_.finish();
  if (!line_.empty() || !first_.empty() || place_ == Place::kText) take("\n");
  end_table();
  fence_.reset();
  output_.flush();
}

void MarkdownRenderer::take(std::string_view character) {
  const bool is_end = character == "\n";
  if (place_ == Place::kText) {
    if (is_end) return end_line();
    return inline_.put(character == "\t" ? " " : character);
  }
  if (place_ == Place::kCodeLine || fence_) {
    if (!is_end) line_ += character;
    if (is_end || line_.size() > kMaxCodeLineBytes) take_code_line();
    return;
  }
  if (!is_end) line_ += character == "\t" ? std::string_view("    ") : character;
  read_start(is_end);
}

void MarkdownRenderer::read_start(bool is_line_complete) {
  while (true) {
    const LineStart start = read_line_start(line_, is_line_complete);
    if (start.kind == Kind::kUndecided) return;
    if (start.kind != Kind::kQuote) return begin(start, is_line_complete);
    ++quote_depth_;
    source_indent_ += start.num_bytes;
    for (Prefix* prefix : {&first_, &rest_}) prefix->push_back({"│ ", kOrnament});
    line_.erase(0, start.num_bytes);
  }
}

void MarkdownRenderer::begin(const LineStart& start, bool is_line_complete) {
  if (start.kind != Kind::kTableRow) end_table();
  switch (start.kind) {
    case Kind::kUndecided:
    case Kind::kQuote:
      return;
    case Kind::kBlank:
      is_after_blank_ = true;
      if (first_.empty()) {
        ++num_blank_lines_;
      } else {
        write_blank_lines();
        put_prefix(first_);
        output_.new_line();
      }
      return start_next_line();
    case Kind::kTableRow:
      return take_table_row();
    case Kind::kFence:
      return open_fence(start);
    case Kind::kRule:
      write_blank_lines();
      write_rule(first_, "");
      return start_next_line();
    case Kind::kHeading:
      return begin_heading(start, is_line_complete);
    case Kind::kBullet:
    case Kind::kNumber:
      begin_item(start);
      return read_start(is_line_complete);
    case Kind::kText:
      return begin_text(start, is_line_complete);
  }
}

// Behind its marker a line of its own begins, with code or a further item perhaps.
void MarkdownRenderer::begin_item(const LineStart& start) {
  is_in_list_ = true;
  is_after_blank_ = false;
  const std::size_t end = std::min(line_.find(' ', start.indent), line_.size());
  const std::string marker =
      start.kind == Kind::kBullet ? "•" : line_.substr(start.indent, end - start.indent);
  const auto marker_columns = static_cast<std::size_t>(display_width(marker));
  first_.push_back(spaces(start.indent));
  first_.push_back({marker + " ", {}});
  rest_.push_back({spaces(start.indent).text + std::string(marker_columns + 1, ' '), {}});
  source_indent_ += start.num_bytes;
  line_.erase(0, start.num_bytes);
}

void MarkdownRenderer::begin_heading(const LineStart& start, bool is_line_complete) {
  is_in_list_ = is_after_blank_ = false;
  begin_inline({.bold = true, .underlined = start.level == 1},
               std::string_view(line_).substr(start.num_bytes), is_line_complete);
}

void MarkdownRenderer::begin_text(const LineStart& start, bool is_line_complete) {
  const bool is_code = start.indent >= kCodeIndent && is_after_blank_ && !is_in_list_;
  if (is_code) {
    place_ = Place::kCodeLine;
    if (is_line_complete) take_code_line();
    return;
  }
  if (start.indent == 0 && source_indent_ == 0) is_in_list_ = false;
  is_after_blank_ = false;
  if (start.indent > 0) {
    for (Prefix* prefix : {&first_, &rest_}) prefix->push_back(spaces(start.indent));
  }
  begin_inline({}, std::string_view(line_).substr(start.num_bytes), is_line_complete);
}

void MarkdownRenderer::begin_inline(const TextStyle& style, std::string_view text, bool is_line_complete) {
  write_blank_lines();
  wrapper_.begin_line(columns(), first_, rest_);
  inline_.begin(style);
  place_ = Place::kText;
  put_inline(text);
  line_.clear();
  if (is_line_complete) end_line();
}

void MarkdownRenderer::put_inline(std::string_view text) {
  while (!text.empty()) {
    const auto length = static_cast<std::size_t>(utf8_prefix(text).num_bytes);
    inline_.put(text.substr(0, length));
    text.remove_prefix(length);
  }
}

void MarkdownRenderer::end_line() {
  inline_.end();
  wrapper_.end_line();
  output_.new_line();
  start_next_line();
}

void MarkdownRenderer::start_next_line() {
  place_ = Place::kLineStart;
  line_.clear();
  first_.clear();
  rest_.clear();
  quote_depth_ = 0;
  source_indent_ = 0;
}

void MarkdownRenderer::open_fence(const LineStart& start) {
  const std::string_view line = std::string_view(line_).substr(start.indent);
  const std::size_t end = std::min(line.find_first_not_of(line[0]), line.size());
  const std::string_view info = trim_spaces(line.substr(end));
  const std::string_view language = info.substr(0, info.find_first_of(" {,"));
  for (Prefix* prefix : {&first_, &rest_}) prefix->push_back(spaces(start.indent));
  write_blank_lines();
  write_rule(first_, info);
  const bool is_in_quote = quote_depth_ > 0;
  fence_.emplace(Fence{.marks = std::string(line.substr(0, end)),
                       .indent = start.indent + (is_in_quote ? 0 : source_indent_),
                       .quote_depth = quote_depth_,
                       .prefix = rest_,
                       .highlighter = CodeHighlighter(language)});
  is_after_blank_ = false;
  start_next_line();
}

// A line of a fence, or one that is indented by four.
void MarkdownRenderer::take_code_line() {
  std::string_view line = line_;
  if (!fence_) {
    write_blank_lines();
    put_prefix(first_);
    output_.put(without_tabs(line), {});
    output_.new_line();
    return start_next_line();
  }
  for (int depth = 0; depth < fence_->quote_depth; ++depth) {
    const LineStart start = read_line_start(line, true);
    if (start.kind != Kind::kQuote) {  // with the quote its code ends
      fence_.reset();
      return read_start(true);
    }
    line.remove_prefix(start.num_bytes);
  }
  if (ends_fence(line)) {
    write_rule(fence_->prefix, "");
    fence_.reset();
  } else {
    write_code(line);
  }
  start_next_line();
}

bool MarkdownRenderer::ends_fence(std::string_view line) const {
  line = trim_spaces(line);
  return line.size() >= fence_->marks.size() && line.find_first_not_of(fence_->marks[0]) == line.npos;
}

void MarkdownRenderer::write_code(std::string_view line) {
  const std::size_t indent = std::min(std::min(line.find_first_not_of(' '), line.size()), fence_->indent);
  const std::string code = without_tabs(line.substr(indent));
  put_prefix(fence_->prefix);
  for (const StyledText& part : fence_->highlighter.highlight(code)) output_.put(part.text, part.style);
  output_.new_line();
}

// ── python ─────
void MarkdownRenderer::write_rule(const Prefix& prefix, std::string_view label) {
  put_prefix(prefix);
  const int window = columns() < 1 ? kRuleColumns : columns();
  int room = std::min(window - display_width(prefix), kRuleColumns);
  std::string rule;
  if (!label.empty()) {
    rule = "── " + std::string(label) + " ";
    room -= display_width(rule);
  }
  for (; room > 0; --room) rule += "─";
  output_.put(rule, kOrnament);
  output_.new_line();
}

void MarkdownRenderer::take_table_row() {
  if (table_) {
    table_->add_row(line_);
    return start_next_line();
  }
  if (table_head_ && MarkdownTable::is_delimiter_row(table_head_->line, line_)) {
    write_blank_lines();
    table_.emplace(
        output_,
        MarkdownTable::Frame{
            .columns = columns(), .prefix = table_head_->prefix, .shows_code_marks = !config_.colours},
        table_head_->line, line_);
    table_head_.reset();
    return start_next_line();
  }
  end_table();
  const bool is_item = first_ != rest_;
  if (is_item) return begin_text({.kind = Kind::kText}, true);
  if (const std::size_t indent = line_.find_first_not_of(' '); indent > 0) first_.push_back(spaces(indent));
  table_head_ = HeldRow{line_, first_};
  is_after_blank_ = false;
  start_next_line();
}

// A line that began like a table and is none is text.
void MarkdownRenderer::end_table() {
  if (table_) {
    table_->finish();
    table_.reset();
  }
  if (!table_head_) return;
  const HeldRow row = std::move(*std::exchange(table_head_, std::nullopt));
  write_blank_lines();
  wrapper_.begin_line(columns(), row.prefix, row.prefix);
  inline_.begin({});
  put_inline(std::string_view(row.line).substr(row.line.find_first_not_of(' ')));
  inline_.end();
  wrapper_.end_line();
  output_.new_line();
}

void MarkdownRenderer::write_blank_lines() {
  if (has_written_) {
    for (; num_blank_lines_ > 0; --num_blank_lines_) output_.new_line();
  }
  num_blank_lines_ = 0;
  has_written_ = true;
}

void MarkdownRenderer::put_prefix(const Prefix& prefix) {
  for (const StyledText& part : prefix) {
    if (!part.text.empty()) output_.put(part.text, part.style);
  }
}

}  // namespace kvasir::cli
