#include "cli/chat/notice.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "cli/markdown/display_width.h"
#include "cli/markdown/styled_output.h"
#include "cli/markdown/terminal_text.h"
#include "cli/markdown/word_wrapper.h"
#include "cli/standard_output.h"
#include "cli/terminal.h"

namespace kvasir::cli {
namespace {

int window_columns() { return ::isatty(STDOUT_FILENO) != 0 ? terminal_columns(STDOUT_FILENO) : 0; }

// `text` of any origin behind `first`, its further lines behind `rest`; ends the line.
void put_wrapped(StyledOutput& output, int columns, const StyledText& first, const StyledText& rest,
                 std::string_view text) {
  WordWrapper wrapper(output);
  const auto end_line = [&] {
    wrapper.end_line();
    output.new_line();
  };
  wrapper.begin_line(columns, {first}, {rest});
  TerminalText characters([&](std::string_view character) {
    if (character == "\n") {
      end_line();
      wrapper.begin_line(columns, {rest}, {rest});
    } else {
      wrapper.put(character == "\t" ? " " : character, {});
    }
  });
  characters.write(text.substr(0, text.find_last_not_of('\n') + 1));
  characters.finish();
  end_line();
}

}  // namespace

void print_notice(std::string_view text) {
  StyledOutput output([](std::string_view bytes) { print(bytes); }, false);
  put_wrapped(output, window_columns(), {}, {}, text);
  output.flush();
}

void print_notice_list(const std::vector<NoticeEntry>& entries) {
  const int columns = window_columns();
  int width = 0;
  for (const NoticeEntry& entry : entries) width = std::max(width, display_width(entry.name) + 2);
  const bool is_narrow = columns > 0 && width > columns / 2;
  if (is_narrow) width = 4;
  const auto spaces = [](int count) { return std::string(static_cast<std::size_t>(count), ' '); };
  StyledOutput output([](std::string_view bytes) { print(bytes); }, false);
  for (const NoticeEntry& entry : entries) {
    StyledText name{spaces(width), {}};
    if (is_narrow) {
      output.put(entry.name, {});
      output.new_line();
    } else {
      name.text = entry.name + spaces(width - display_width(entry.name));
    }
    put_wrapped(output, columns, name, {spaces(width), {}}, entry.text);
  }
  output.flush();
}

}  // namespace kvasir::cli
