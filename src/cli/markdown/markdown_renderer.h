// A model's Markdown on a terminal, while it comes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/markdown/code_highlighter.h"
#include "cli/markdown/inline_stream.h"
#include "cli/markdown/line_start.h"
#include "cli/markdown/markdown_table.h"
#include "cli/markdown/styled_output.h"
#include "cli/markdown/terminal_text.h"
#include "cli/markdown/word_wrapper.h"

namespace kvasir::cli {

// Words appear once they are whole, emphasis, code and links with their end, lines of code line by line, a
// table once its widths are known (markdown_table.h); what has been written stays. So the parser decides as
// it goes, and reads less than CommonMark: a line is a line (no paragraphs that join lines, no headings
// underlined by the next line), and an element ends in the line where it began. HTML is text.
//
// The bytes that come out do not depend on how the stream was cut, and whatever comes in, they hold no
// control but newlines and this program's own SGR sequences.
//
// Thread safety: none.
class MarkdownRenderer {
 public:
  struct Config {
    std::function<int()> columns;  // of the window, now; below 1: lines are as long as they come
    bool colours = true;           // without them code keeps its marks
  };
  MarkdownRenderer(StyledOutput::ByteSink sink, Config config);

  void write(std::string_view piece);
  // The end of the text: what is held back goes out, and the line ends.
  void finish();

 private:
  enum class Place { kLineStart, kText, kCodeLine };
  using Prefix = std::vector<StyledText>;

  struct Fence {
    std::string marks;       // at least so many of these end it
    std::size_t indent = 0;  // spaces that are no part of the code
    int quote_depth = 0;
    Prefix prefix;
    CodeHighlighter highlighter;
  };

  struct HeldRow {
    std::string line;
    Prefix prefix;
  };

  void take(std::string_view character);
  void read_start(bool is_line_complete);
  void begin(const LineStart& start, bool is_line_complete);
  void begin_item(const LineStart& start);
  void begin_text(const LineStart& start, bool is_line_complete);
  void begin_heading(const LineStart& start, bool is_line_complete);
  void begin_inline(const TextStyle& style, std::string_view text, bool is_line_complete);
  void put_inline(std::string_view text);
  void end_line();
  void start_next_line();

  void open_fence(const LineStart& start);
  void take_code_line();
  bool ends_fence(std::string_view line) const;
  void write_code(std::string_view line);
  void write_rule(const Prefix& prefix, std::string_view label);
  void take_table_row();
  void end_table();

  void write_blank_lines();
  void put_prefix(const Prefix& prefix);
  int columns() const { return config_.columns(); }

  const Config config_;
  StyledOutput output_;
  WordWrapper wrapper_;
  InlineStream inline_;
  TerminalText text_;

  Place place_ = Place::kLineStart;
  std::string line_;               // the part of the line that is not taken yet
  Prefix first_, rest_;            // of the line, and of those that it becomes
  int quote_depth_ = 0;            // of the line
  std::size_t source_indent_ = 0;  // columns of the line that containers took: quote marks, items
  int num_blank_lines_ = 0;        // not written yet
  bool has_written_ = false;
  bool is_in_list_ = false;
  bool is_after_blank_ = true;

  std::optional<Fence> fence_;
  std::optional<HeldRow> table_head_;  // perhaps: the next line tells
  std::optional<MarkdownTable> table_;
};

}  // namespace kvasir::cli
