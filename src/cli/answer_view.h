// How an answer looks on the standard output.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace kvasir::cli {

enum class AnswerFormat : std::uint8_t {
  kRaw,       // its bytes, for a file or another program
  kPlain,     // its text on a terminal, without what would steer it
  kMarkdown,  // rendered (markdown/markdown_renderer.h)
};

// Markdown where the standard output is a terminal that knows escape codes, unless `plain`.
AnswerFormat choose_answer_format(bool plain);

// One answer. Thread safety: none.
class AnswerView {
 public:
  virtual ~AnswerView() = default;
  virtual void write(std::string_view piece) = 0;
  // Writes the held-back text and ends the line: to a file always with a newline, on a terminal where one is
  // missing.
  virtual void finish() = 0;
};

std::unique_ptr<AnswerView> make_answer_view(AnswerFormat format);

}  // namespace kvasir::cli
