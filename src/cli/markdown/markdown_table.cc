#include "cli/markdown/markdown_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/markdown/display_width.h"
#include "cli/markdown/inline_markdown.h"
#include "cli/markdown/word_wrapper.h"

namespace kvasir::cli {
namespace {

constexpr TextStyle kLines{.dim = true};
constexpr int kSeparatorColumns = 3;  // " │ "
constexpr int kMinCellColumns = 8;    // narrower columns of prose read badly

// Cells end at bars that are neither escaped nor in code.
std::vector<std::string> split_cells(std::string_view line) {
  line = trim_spaces(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  std::vector<std::string> cells(1);
  bool is_code = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cells.back() += line[++i];
    } else if (line[i] == '|' && !is_code) {
      cells.emplace_back();
    } else {
      // A mark without its partner is no code.
      if (line[i] == '`') is_code = !is_code && line.find('`', i + 1) != line.npos;
      cells.back() += line[i];
    }
  }
  if (cells.size() > 1 && trim_spaces(cells.back()).empty()) cells.pop_back();
  for (std::string& cell : cells) cell = std::string(trim_spaces(cell));
  return cells;
}

// The lines that a cell becomes.
class CellLines : public LineSink {
 public:
  void put(std::string_view text, const TextStyle& style) override {
    std::vector<StyledText>& line = lines.back();
    if (!line.empty() && line.back().style == style) {
      line.back().text += text;
    } else {
      line.push_back({std::string(text), style});
    }
  }
  void new_line() override { lines.emplace_back(); }

  std::vector<std::vector<StyledText>> lines{1};
};

std::vector<std::vector<StyledText>> wrap(const std::vector<StyledText>& cell, int columns) {
  CellLines lines;
  WordWrapper wrapper(lines);
  wrapper.begin_line(columns, {}, {});
  for (const StyledText& part : cell) wrapper.put(part);
  wrapper.end_line();
  return std::move(lines.lines);
}

StyledText spaces(int count) { return {std::string(static_cast<std::size_t>(std::max(count, 0)), ' '), {}}; }

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

}  // namespace

bool MarkdownTable::is_delimiter_row(std::string_view head, std::string_view line) {
  const std::vector<std::string> cells = split_cells(line);
  const bool is_one = std::ranges::all_of(cells, [](std::string_view cell) {
    if (cell.starts_with(':')) cell.remove_prefix(1);
    if (cell.ends_with(':')) cell.remove_suffix(1);
    return !cell.empty() && cell.find_first_not_of('-') == cell.npos;
  });
  return is_one && cells.size() == split_cells(head).size();
}

MarkdownTable::MarkdownTable(LineSink& sink, Frame frame, std::string_view head, std::string_view delimiters)
    : sink_(sink), frame_(std::move(frame)), head_(read_row(head, true)) {
  for (const std::string_view cell : split_cells(delimiters)) {
    alignments_.push_back(!cell.ends_with(':')    ? Alignment::kLeft
                          : cell.starts_with(':') ? Alignment::kCentre
                                                  : Alignment::kRight);
  }
}

void MarkdownTable::add_row(std::string_view line) {
  Row row = read_row(line, false);
  row.resize(head_.size());
  if (!widths_.empty()) return write_row(row);
  held_rows_.push_back(std::move(row));
  if (held_rows_.size() == kMeasuredRows) fix_widths(true);
}

void MarkdownTable::finish() {
  if (widths_.empty()) fix_widths(false);
}

MarkdownTable::Row MarkdownTable::read_row(std::string_view line, bool is_head) const {
  Row row;
  for (const std::string& cell : split_cells(line)) {
    row.push_back(parse_inline(cell, {.style = {.bold = is_head},
                                      .is_complete = true,
                                      .shows_code_marks = frame_.shows_code_marks})
                      .parts);
  }
  return row;
}

void MarkdownTable::fix_widths(bool may_go_on) {
  for (std::size_t i = 0; i < head_.size(); ++i) {
    int width = std::max(may_go_on ? kMinCellColumns : 1, display_width(head_[i]));
    for (const Row& row : held_rows_) width = std::max(width, display_width(row[i]));
    widths_.push_back(width);
  }
  const int num_separators = static_cast<int>(head_.size()) - 1;
  const int room = frame_.columns - display_width(frame_.prefix) - kSeparatorColumns * num_separators;
  is_list_ = frame_.columns > 0 && !fit_widths(room);
  if (!is_list_) {
    write_row(head_);
    write_rule();
  }
  for (const Row& row : std::exchange(held_rows_, {})) write_row(row);
}

// The widest columns give until all fit.
bool MarkdownTable::fit_widths(int room) {
  int total = std::accumulate(widths_.begin(), widths_.end(), 0);
  while (total > room) {
    const auto widest = std::ranges::max_element(widths_);
    if (*widest <= kMinCellColumns) return false;
    --*widest;
    --total;
  }
  return true;
}

void MarkdownTable::write_row(const Row& row) {
  if (is_list_) return write_record(row);
  std::vector<std::vector<Cell>> cells;
  std::size_t num_lines = 1;
  for (std::size_t i = 0; i < head_.size(); ++i) {
    cells.push_back(wrap(row[i], widths_[i]));
    num_lines = std::max(num_lines, cells.back().size());
  }
  for (std::size_t line = 0; line < num_lines; ++line) write_line(cells, line);
}

void MarkdownTable::write_line(const std::vector<std::vector<Cell>>& cells, std::size_t line) {
  put(frame_.prefix);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) sink_.put(" │ ", kLines);
    const Cell text = line < cells[i].size() ? cells[i][line] : Cell();
    const int free = widths_[i] - display_width(text);
    const int before = alignments_[i] == Alignment::kRight    ? free
                       : alignments_[i] == Alignment::kCentre ? free / 2
                                                              : 0;
    put({spaces(before)});
    put(text);
    if (i + 1 < cells.size()) put({spaces(free - before)});
  }
  sink_.new_line();
}

void MarkdownTable::write_rule() {
  put(frame_.prefix);
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    if (i > 0) sink_.put("─┼─", kLines);
    sink_.put(repeated("─", widths_[i]), kLines);
  }
  sink_.new_line();
}

void MarkdownTable::write_record(const Row& row) {
  if (!std::exchange(is_first_record_, false)) {
    put(frame_.prefix);
    sink_.new_line();
  }
  std::vector<StyledText> rest = frame_.prefix;
  rest.push_back(spaces(2));
  for (std::size_t i = 0; i < row.size(); ++i) {
    WordWrapper wrapper(sink_);
    wrapper.begin_line(frame_.columns, frame_.prefix, rest);
    for (const StyledText& part : head_[i]) wrapper.put(part);
    if (!head_[i].empty()) wrapper.put({": ", {}});
    for (const StyledText& part : row[i]) wrapper.put(part);
    wrapper.end_line();
    sink_.new_line();
  }
}

void MarkdownTable::put(const Cell& cell) {
  for (const StyledText& part : cell) {
    if (!part.text.empty()) sink_.put(part.text, part.style);
  }
}

}  // namespace kvasir::cli
