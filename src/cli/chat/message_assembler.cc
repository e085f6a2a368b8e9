#include "cli/chat/message_assembler.h"

#include <cstddef>

namespace kvasir::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

std::string_view without_spaces_at_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// Where the argument of a command begins; 0: the line is none.
std::size_t argument_of(std::string_view line) {
  if (!line.starts_with('/')) return 0;
  const std::size_t space = line.find(' ');
  if (space == line.npos) return 0;
  const std::size_t begin = line.find_first_not_of(' ', space);
  return begin == line.npos ? 0 : begin;
}

}  // namespace

bool MessageAssembler::add(std::string_view line) {
  ++num_lines_;
  if (is_open_) return add_to_block(line);
  const std::size_t argument = argument_of(line);
  // A text that was pasted or is shown again from the history is whole as it is.
  const bool begins_block =
      num_lines_ == 1 && line.substr(argument).starts_with(kQuotes) && !line.contains('\n');
  if (begins_block) {
    is_open_ = true;
    is_block_ = argument == 0;
    text_ = line.substr(0, argument);
    line.remove_prefix(argument + kQuotes.size());
    return without_spaces_at_end(line).empty() ? false : add_to_block(line);
  }
  if (!line.ends_with('\\')) {
    text_ += line;
    return true;
  }
  line.remove_suffix(1);
  text_ += line;
  text_ += '\n';
  return false;
}

bool MessageAssembler::add_to_block(std::string_view line) {
  const std::string_view trimmed = without_spaces_at_end(line);
  const bool is_end = trimmed.ends_with(kQuotes);
  if (is_end) line = trimmed.substr(0, trimmed.size() - kQuotes.size());
  if (is_end && line.empty()) return true;
  if (has_content_) text_ += '\n';
  has_content_ = true;
  text_ += line;
  return is_end;
}

}  // namespace kvasir::cli
