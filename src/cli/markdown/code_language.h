// The delimiters and words that tell a language's comments, strings and reserved words from the rest.
#pragma once

#include <span>
#include <string_view>

namespace kvasir::cli {

struct Delimiters {
  std::string_view begin, end;
};

struct CodeLanguage {
  std::span<const std::string_view> names;          // behind a fence
  std::span<const std::string_view> line_comments;  // beginnings of those that end with the line
  std::span<const Delimiters> block_comments;
  std::span<const Delimiters> block_strings;  // they may go on over lines
  std::string_view quotes;                    // of strings that end with the line
  std::span<const std::string_view> words;    // sorted
  bool ignores_case = false;
  bool is_diff = false;  // the first character of a line says what it is
};

// Null when there is none of that name.
const CodeLanguage* find_code_language(std::string_view name);

}  // namespace kvasir::cli
