// Reads lines from a person at a terminal: editing keys, and what was typed before.
#pragma once

#include <histedit.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/chat/input_completion.h"
#include "cli/chat/pasted_text.h"

namespace kvasir::cli {

// By libedit. Pasted text stays one line of input, newlines included, where the terminal marks pastes
// (bracketed paste). It is never taken for keys, even if it was pasted before read(); Alt-Enter is a newline
// too. Ctrl-C while a line is typed drops the line; the process is not signalled. Only one may exist at a
// time, for the terminal is one.
class LineEditor {
 public:
  using Completer = std::function<Completions(std::string_view line)>;
  // `completer` says what Tab may make of what stands before the cursor.
  explicit LineEditor(Completer completer);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  enum class Event {
    kLine,
    kDropped,      // Ctrl-C: what was typed is gone
    kInterrupted,  // Ctrl-C where nothing was typed
    kEnd,          // Ctrl-D, or the terminal went away
  };
  // Shows `prompt` and waits; the line comes without its newline.
  Event read(const std::string& prompt, std::string& line);

  // For the arrow keys and Ctrl-R; in memory only, the last kHistorySize. A long message shows there by a
  // name, as a long paste does.
  void remember(const std::string& message);

  static constexpr int kHistorySize = 1000;

 private:
  struct EndEditor {
    void operator()(EditLine* editor) const { ::el_end(editor); }
  };
  struct EndHistory {
    void operator()(History* history) const { ::history_end(history); }
  };

  void bind_keys();
  unsigned char complete();
  unsigned char paste();
  unsigned char suspend();
  void mark_pastes(bool on) const;
  void show_candidates(const Completions& completions) const;

  // As libedit calls them.
  static char* prompt_of(EditLine* editor);
  static unsigned char drop_line(EditLine* editor, int key);
  static unsigned char on_tab(EditLine* editor, int key);
  static unsigned char on_paste(EditLine* editor, int key);
  static unsigned char on_suspend(EditLine* editor, int key);
  static unsigned char on_newline(EditLine* editor, int key);

  const Completer completer_;
  const bool marks_pastes_;  // the terminal is asked to
  std::string prompt_;
  std::optional<Event> dropped_;
  std::string typed_;  // the last line, with the names of what was pasted
  PastedTexts pastes_;
  std::unique_ptr<History, EndHistory> history_;
  std::unique_ptr<EditLine, EndEditor> editor_;
};

}  // namespace kvasir::cli
