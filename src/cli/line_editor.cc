#include "cli/line_editor.h"

#include <clocale>
#include <cstdio>
#include <utility>

namespace kvasir::cli {
namespace {

constexpr int kHistoryLines = 1000;

LineEditor& owner_of(EditLine* editor) {
  void* owner = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &owner);
  return *static_cast<LineEditor*>(owner);
}

}  // namespace

LineEditor::LineEditor(std::string history_path)
    : history_path_(std::move(history_path)), history_(::history_init()) {
  std::setlocale(LC_CTYPE, "");  // so that libedit reads the terminal's UTF-8
  editor_.reset(::el_init("kvasir", stdin, stdout, stderr));
  EditLine* editor = editor_.get();
  ::el_set(editor, EL_CLIENTDATA, this);
  ::el_set(editor, EL_PROMPT, &LineEditor::prompt_of);
  ::el_set(editor, EL_EDITOR, "emacs");
  // While a line is typed Ctrl-C is a key: the line goes, the process stays.
  ::el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  ::el_set(editor, EL_ADDFN, "kvasir-drop-line", "Drop the line", &LineEditor::drop_line);
  ::el_set(editor, EL_BIND, "^C", "kvasir-drop-line", nullptr);
  ::el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);

  HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kHistoryLines);
  ::history(history_.get(), &event, H_SETUNIQUE, 1);
  if (!history_path_.empty()) ::history(history_.get(), &event, H_LOAD, history_path_.c_str());
  ::el_set(editor, EL_HIST, &::history, history_.get());
}

LineEditor::Event LineEditor::read(const std::string& prompt, std::string& line) {
  prompt_ = prompt;
  dropped_ = false;
  int num_bytes = 0;
  // Before the prompt shows: a Ctrl-C typed at once must find its key already bound.
  ::el_set(editor_.get(), EL_PREP_TERM, 1);
  const char* typed = ::el_gets(editor_.get(), &num_bytes);
  if (dropped_) return Event::kDropped;
  if (typed == nullptr || num_bytes <= 0) return Event::kEnd;
  line.assign(typed, static_cast<std::size_t>(num_bytes));
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) remember(line);
  return Event::kLine;
}

void LineEditor::remember(const std::string& line) {
  HistEvent event;
  ::history(history_.get(), &event, H_ENTER, line.c_str());
  // A history that cannot be written is no reason to stop a conversation.
  if (!history_path_.empty()) ::history(history_.get(), &event, H_SAVE, history_path_.c_str());
}

char* LineEditor::prompt_of(EditLine* editor) { return owner_of(editor).prompt_.data(); }

unsigned char LineEditor::drop_line(EditLine* editor, int /*key*/) {
  owner_of(editor).dropped_ = true;
  std::fputs("^C\n", stdout);
  const LineInfo* typed = ::el_line(editor);
  ::el_deletestr(editor, static_cast<int>(typed->cursor - typed->buffer));
  return CC_EOF;
}

}  // namespace kvasir::cli
