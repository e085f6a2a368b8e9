#include "cli/answer_view.h"

#include <unistd.h>

#include <string>

#include "cli/markdown/markdown_renderer.h"
#include "cli/markdown/terminal_text.h"
#include "cli/standard_output.h"
#include "cli/terminal.h"

namespace kvasir::cli {
namespace {

class RawView : public AnswerView {
 public:
  void write(std::string_view piece) override { print(piece); }
  void finish() override { print("\n"); }
};

class PlainView : public AnswerView {
 public:
  void write(std::string_view piece) override {
    text_.write(piece);
    flush();
  }
  void finish() override {
    text_.finish();
    flush();
    if (!is_at_line_start_) print("\n");
  }

 private:
  void flush() {
    if (bytes_.empty()) return;
    is_at_line_start_ = bytes_.ends_with('\n');
    print(bytes_);
    bytes_.clear();
  }

  std::string bytes_;
  bool is_at_line_start_ = true;
  TerminalText text_{[this](std::string_view character) { bytes_ += character; }};
};

class MarkdownView : public AnswerView {
 public:
  void write(std::string_view piece) override { renderer_.write(piece); }
  void finish() override { renderer_.finish(); }

 private:
  MarkdownRenderer renderer_{
      [](std::string_view bytes) { print(bytes); },
      {.columns = [] { return terminal_columns(STDOUT_FILENO); }, .colours = !wants_no_colour()}};
};

}  // namespace

AnswerFormat choose_answer_format(bool plain) {
  if (::isatty(STDOUT_FILENO) == 0) return AnswerFormat::kRaw;
  return plain || is_dumb_terminal() ? AnswerFormat::kPlain : AnswerFormat::kMarkdown;
}

std::unique_ptr<AnswerView> make_answer_view(AnswerFormat format) {
  switch (format) {
    case AnswerFormat::kRaw:
      return std::make_unique<RawView>();
    case AnswerFormat::kPlain:
      return std::make_unique<PlainView>();
    case AnswerFormat::kMarkdown:
      return std::make_unique<MarkdownView>();
  }
  return std::make_unique<RawView>();
}

}  // namespace kvasir::cli
