#include "cli/chat/line_editor.h"

#include <langinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/markdown/display_width.h"
#include "cli/standard_output.h"
#include "cli/terminal.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kMarkPastes = "\x1b[?2004h";
constexpr std::string_view kDoNotMarkPastes = "\x1b[?2004l";
constexpr const char* kDropLineKey = "\x03";  // Ctrl-C
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr std::size_t kMaxPasteCharacters = std::size_t{16} << 20;
constexpr std::size_t kMaxShownCandidates = 100;

LineEditor& owner_of(EditLine* editor) {
  void* owner = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &owner);
  return *static_cast<LineEditor*>(owner);
}

// libedit must read UTF-8 also where no locale is set, as in most containers.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

void append_utf8(wchar_t character, std::string& out) {
  const auto code = static_cast<unsigned>(character);
  const auto byte = [&out](unsigned value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// The part of a path behind the last folder, which tells candidates apart.
std::string_view shown_name(std::string_view candidate) {
  const std::size_t slash = candidate.substr(0, candidate.size() - 1).rfind('/');
  return slash == candidate.npos || slash == 0 ? candidate : candidate.substr(slash + 1);
}

}  // namespace

LineEditor::LineEditor(Completer completer)
    : completer_(std::move(completer)),
      marks_pastes_(::isatty(STDOUT_FILENO) != 0 && !is_dumb_terminal()),
      history_(::history_init()) {
  use_utf8();
  editor_.reset(::el_init("kvasir", stdin, stdout, stderr));
  EditLine* editor = editor_.get();
  ::el_set(editor, EL_CLIENTDATA, this);
  ::el_set(editor, EL_SIGNAL, 1);  // the terminal is as it was when a signal ends or stops the process
  ::el_set(editor, EL_PROMPT, &LineEditor::prompt_of);
  ::el_set(editor, EL_EDITOR, "emacs");
  bind_keys();

  HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kHistorySize);
  ::history(history_.get(), &event, H_SETUNIQUE, 1);
  ::el_set(editor, EL_HIST, &::history, history_.get());
}

LineEditor::~LineEditor() { mark_pastes(false); }

void LineEditor::bind_keys() {
  EditLine* editor = editor_.get();
  // While a line is typed Ctrl-C is a key: the line goes, the process stays. Carriage returns stay what they
  // are, for a paste has both kinds of line ends.
  ::el_set(editor, EL_SETTY, "-d", "-isig", "-icrnl", "-inlcr", nullptr);
  ::el_set(editor, EL_ADDFN, "kvasir-drop-line", "Drop the line", &LineEditor::drop_line);
  ::el_set(editor, EL_ADDFN, "kvasir-complete", "Complete a name", &LineEditor::on_tab);
  ::el_set(editor, EL_ADDFN, "kvasir-paste", "Take pasted text", &LineEditor::on_paste);
  ::el_set(editor, EL_ADDFN, "kvasir-newline", "Add a line", &LineEditor::on_newline);
  ::el_set(editor, EL_ADDFN, "kvasir-suspend", "Suspend", &LineEditor::on_suspend);
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"^C", "kvasir-drop-line"},   {"^Z", "kvasir-suspend"},          {"^I", "kvasir-complete"},
      {"\\e[200~", "kvasir-paste"}, {"\\e^M", "kvasir-newline"},       {"\\e^J", "kvasir-newline"},
      {"^R", "em-inc-search-prev"}, {"^W", "ed-delete-prev-word"},     {"\\e[1;5C", "em-next-word"},
      {"\\e[1;5D", "ed-prev-word"}, {"\\e[3~", "ed-delete-next-char"}, {"\\e[H", "ed-move-to-beg"},
      {"\\e[F", "ed-move-to-end"},  {"\\e[1~", "ed-move-to-beg"},      {"\\e[4~", "ed-move-to-end"}};
  for (const auto& [keys, function] : kKeys) ::el_set(editor, EL_BIND, keys, function, nullptr);
}

LineEditor::Event LineEditor::read(const std::string& prompt, std::string& line) {
  prompt_ = prompt;
  dropped_.reset();
  int num_bytes = 0;
  // Before the prompt shows: a Ctrl-C typed at once must find its key already bound.
  ::el_set(editor_.get(), EL_PREP_TERM, 1);
  mark_pastes(true);
  const char* typed = ::el_gets(editor_.get(), &num_bytes);
  if (dropped_) return *dropped_;
  if (typed == nullptr || num_bytes <= 0) return Event::kEnd;
  std::string_view whole(typed, static_cast<std::size_t>(num_bytes));
  if (whole.ends_with('\n')) whole.remove_suffix(1);
  typed_ = whole;
  line = pastes_.expand(whole);
  return Event::kLine;
}

void LineEditor::mark_pastes(bool on) const {
  if (marks_pastes_) print(on ? kMarkPastes : kDoNotMarkPastes);
}

// libedit is slow where a line has thousands of characters, and shows nothing of use where it has more lines
// than the window.
void LineEditor::remember(const std::string& message) {
  const std::string shown = message == pastes_.expand(typed_) ? typed_ : pastes_.add(message);
  HistEvent event;
  ::history(history_.get(), &event, H_ENTER, shown.c_str());
}

unsigned char LineEditor::complete() {
  const LineInfo* info = ::el_line(editor_.get());
  const std::string_view line(info->buffer, static_cast<std::size_t>(info->cursor - info->buffer));
  const Completions completions = completer_(line);
  if (completions.candidates.empty()) return CC_NORM;
  std::string whole = common_prefix(completions.candidates);
  const bool is_only_one = completions.candidates.size() == 1;
  if (is_only_one && !whole.ends_with('/')) whole += ' ';
  const std::size_t typed = line.size() - completions.begin;
  if (whole.size() > typed) {
    ::el_insertstr(editor_.get(), whole.c_str() + typed);
    return CC_REFRESH;
  }
  if (is_only_one) return CC_NORM;
  show_candidates(completions);
  return CC_REDISPLAY;
}

// In columns, under the line; libedit then shows the line again.
void LineEditor::show_candidates(const Completions& completions) const {
  int width = 0;
  for (const std::string& candidate : completions.candidates) {
    width = std::max(width, display_width(shown_name(candidate)) + 2);
  }
  const int per_line = std::max(1, terminal_columns(STDOUT_FILENO) / width);
  std::string text;
  int column = 0;
  std::size_t num_shown = 0;
  for (const std::string& candidate : completions.candidates) {
    if (num_shown++ == kMaxShownCandidates) {
      text += "\n...";
      break;
    }
    if (column++ % per_line == 0) text += '\n';
    const std::string_view name = shown_name(candidate);
    text += name;
    text.append(static_cast<std::size_t>(width - display_width(name)), ' ');
  }
  print(text + '\n');
}

unsigned char LineEditor::paste() {
  std::wstring typed;
  wchar_t character = 0;
  while (!typed.ends_with(kPasteEnd)) {
    if (::el_wgetc(editor_.get(), &character) != 1) return CC_EOF;
    if (typed.size() < kMaxPasteCharacters || kPasteEnd.contains(character)) typed += character;
  }
  typed.resize(typed.size() - kPasteEnd.size());
  std::string text;
  for (const wchar_t c : typed) append_utf8(c, text);
  text = pastes_.add(clean_paste(text));
  if (!text.empty()) ::el_insertstr(editor_.get(), text.c_str());
  return CC_REFRESH;
}

unsigned char LineEditor::suspend() {
  mark_pastes(false);
  ::el_set(editor_.get(), EL_PREP_TERM, 0);
  ::kill(0, SIGTSTP);  // as the terminal would do it; here it goes on with fg
  ::el_set(editor_.get(), EL_PREP_TERM, 1);
  mark_pastes(true);
  return CC_REDISPLAY;
}

char* LineEditor::prompt_of(EditLine* editor) { return owner_of(editor).prompt_.data(); }

unsigned char LineEditor::drop_line(EditLine* editor, int /*key*/) {
  const LineInfoW* typed = ::el_wline(editor);
  if (typed->cursor != typed->lastchar) {
    // The following output must stand behind the line: libedit goes there when this returns, and the key
    // comes again.
    ::el_cursor(editor, static_cast<int>(typed->lastchar - typed->cursor));
    ::el_push(editor, kDropLineKey);
    return CC_CURSOR;
  }
  owner_of(editor).dropped_ = typed->lastchar == typed->buffer ? Event::kInterrupted : Event::kDropped;
  print("^C\n");
  ::el_deletestr(editor, static_cast<int>(typed->lastchar - typed->buffer));
  return CC_EOF;
}

unsigned char LineEditor::on_tab(EditLine* editor, int /*key*/) { return owner_of(editor).complete(); }

unsigned char LineEditor::on_paste(EditLine* editor, int /*key*/) { return owner_of(editor).paste(); }

unsigned char LineEditor::on_suspend(EditLine* editor, int /*key*/) { return owner_of(editor).suspend(); }

unsigned char LineEditor::on_newline(EditLine* editor, int /*key*/) {
  return ::el_insertstr(editor, "\n") == 0 ? CC_REFRESH : CC_ERROR;
}

}  // namespace kvasir::cli
