#include "cli/markdown/code_highlighter.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <string>

#include "cli/markdown/code_language.h"

namespace kvasir::cli {
namespace {

constexpr TextStyle kComment{.dim = true};
constexpr TextStyle kString{.colour = TextColour::kGreen};
constexpr TextStyle kNumber{.colour = TextColour::kCyan};
constexpr TextStyle kWord{.colour = TextColour::kMagenta};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::size_t end_of_word(std::string_view line, std::size_t at) {
  return static_cast<std::size_t>(
      std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(at), line.end(), is_word) - line.begin());
}

// Behind the quote that ends what begins at `at`, or the end of the line.
std::size_t end_of_string(std::string_view line, std::size_t at) {
  for (std::size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == line[at]) {
      return i + 1;
    }
  }
  return line.size();
}

TextStyle style_of_diff(std::string_view line) {
  if (line.starts_with("+++") || line.starts_with("---")) return {.bold = true};
  if (line.starts_with('+')) return {.colour = TextColour::kGreen};
  if (line.starts_with('-')) return {.colour = TextColour::kRed};
  if (line.starts_with("@@")) return {.colour = TextColour::kCyan};
  return {};
}

const Delimiters* find_opening(std::span<const Delimiters> list, std::string_view rest) {
  const auto found =
      std::ranges::find_if(list, [rest](const Delimiters& d) { return rest.starts_with(d.begin); });
  return found == list.end() ? nullptr : &*found;
}

bool is_reserved(const CodeLanguage& language, std::string_view word) {
  if (!language.ignores_case) return std::ranges::binary_search(language.words, word);
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::binary_search(language.words, std::string_view(lower));
}

}  // namespace

CodeHighlighter::CodeHighlighter(std::string_view name) : language_(find_code_language(name)) {}

std::vector<StyledText> CodeHighlighter::highlight(std::string_view line) {
  std::vector<StyledText> parts;
  if (line.empty()) return parts;
  if (language_ == nullptr) return {{std::string(line), {}}};
  if (language_->is_diff) return {{std::string(line), style_of_diff(line)}};
  for (std::size_t at = 0; at < line.size();) {
    TextStyle style;
    const std::size_t end = read_piece(line, at, style);
    if (!parts.empty() && parts.back().style == style) {
      parts.back().text += line.substr(at, end - at);
    } else {
      parts.push_back({std::string(line.substr(at, end - at)), style});
    }
    at = end;
  }
  return parts;
}

std::size_t CodeHighlighter::read_piece(std::string_view line, std::size_t at, TextStyle& style) {
  if (open_end_.empty()) {
    const std::string_view rest = line.substr(at);
    for (const std::string_view comment : language_->line_comments) {
      // In a shell and in YAML a # within a word is none.
      const bool is_within_word = comment == "#" && at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t';
      if (!rest.starts_with(comment) || is_within_word) continue;
      style = kComment;
      return line.size();
    }
    const Delimiters* opening = find_opening(language_->block_comments, rest);
    open_style_ = opening != nullptr ? kComment : kString;
    if (opening == nullptr) opening = find_opening(language_->block_strings, rest);
    if (opening != nullptr) {
      open_end_ = opening->end;
      style = open_style_;
      return at + opening->begin.size();
    }
    if (language_->quotes.contains(line[at])) {
      style = kString;
      return end_of_string(line, at);
    }
    if (!is_word(line[at])) return at + 1;
    const std::size_t end = end_of_word(line, at);
    if (is_digit(line[at])) style = kNumber;
    if (is_reserved(*language_, line.substr(at, end - at))) style = kWord;
    return end;
  }
  style = open_style_;
  const std::size_t end = line.find(open_end_, at);
  if (end == line.npos) return line.size();
  const std::size_t behind = end + open_end_.size();
  open_end_ = {};
  return behind;
}

}  // namespace kvasir::cli
