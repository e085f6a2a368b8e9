// Reads lines from a person at a terminal: editing keys, and a history that outlives the process.
#pragma once

#include <histedit.h>

#include <memory>
#include <string>

namespace kvasir::cli {

// Ctrl-C while a line is typed drops the line; the process is not signalled. Only one may exist at a time,
// for the terminal is one.
class LineEditor {
 public:
  // History is read from and written to `history_path`; empty: it is kept in memory only.
  explicit LineEditor(std::string history_path);

  enum class Event { kLine, kDropped, kEnd };
  // Shows `prompt` and waits; the line comes without its newline. kEnd: Ctrl-D, or the terminal went away.
  Event read(const std::string& prompt, std::string& line);

 private:
  struct EndEditor {
    void operator()(EditLine* editor) const { ::el_end(editor); }
  };
  struct EndHistory {
    void operator()(History* history) const { ::history_end(history); }
  };
  void remember(const std::string& line);

  const std::string history_path_;
  std::string prompt_;
  bool dropped_ = false;
  std::unique_ptr<History, EndHistory> history_;
  std::unique_ptr<EditLine, EndEditor> editor_;

  static char* prompt_of(EditLine* editor);
  static unsigned char drop_line(EditLine* editor, int key);
};

}  // namespace kvasir::cli
