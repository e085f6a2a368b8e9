// A table of Markdown with its columns aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/markdown/styled_output.h"
#include "cli/markdown/text_style.h"

namespace kvasir::cli {

// Rows are held back until kMeasuredRows have come or the table ends; then the widths of the columns are
// fixed, and each further row is written as it comes. A cell that is wider than its column is wrapped. Where
// the window has no room for the columns side by side, each row becomes a list of "heading: cell".
//
// Thread safety: none.
class MarkdownTable {
 public:
  struct Frame {
    int columns = 0;                 // of the window; below 1: as wide as it comes
    std::vector<StyledText> prefix;  // of each line
    bool shows_code_marks = false;
  };

  // Whether the line under a head makes both a table: | --- | :-: |, with as many cells.
  static bool is_delimiter_row(std::string_view head, std::string_view line);

  // Requires: is_delimiter_row(head, delimiters). `sink` outlives the table.
  MarkdownTable(LineSink& sink, Frame frame, std::string_view head, std::string_view delimiters);

  // Cells beyond those of the head are left out, as CommonMark's extension has it.
  void add_row(std::string_view line);
  // No further rows.
  void finish();

  static constexpr std::size_t kMeasuredRows = 8;

 private:
  enum class Alignment : std::uint8_t { kLeft, kRight, kCentre };
  using Cell = std::vector<StyledText>;
  using Row = std::vector<Cell>;

  Row read_row(std::string_view line, bool is_head) const;
  void fix_widths(bool may_go_on);
  bool fit_widths(int room);
  void write_row(const Row& row);
  void write_line(const std::vector<std::vector<Cell>>& cells, std::size_t line);
  void write_rule();
  void write_record(const Row& row);
  void put(const Cell& cell);

  LineSink& sink_;
  const Frame frame_;
  Row head_;
  std::vector<Alignment> alignments_;
  std::vector<Row> held_rows_;
  std::vector<int> widths_;  // empty: not fixed yet
  bool is_list_ = false;     // of headings and cells
  bool is_first_record_ = true;
};

}  // namespace kvasir::cli
