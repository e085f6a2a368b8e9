// A conversation at the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/answer_view.h"
#include "cli/blocked_signals.h"
#include "cli/chat/answer_parameters.h"
#include "cli/chat/conversation.h"
#include "cli/chat/history_file.h"
#include "cli/chat/line_editor.h"
#include "cli/generation.h"
#include "cli/terminal.h"
#include "kvasir/engine.h"

namespace kvasir::cli {

struct ChatConfig {
  std::string model;   // as it was asked for
  std::string system;  // system message; empty: none
  AnswerParameters parameters;
  AnswerFormat format = AnswerFormat::kRaw;
  bool raw = false;            // each message is a text of its own that the model continues; no memory
  bool parse_special = false;  // with raw: control tokens in a message mean themselves
  bool keeps_history = true;   // in a file, across conversations
  bool quiet = false;
  bool verbose = false;  // the speed of each answer
};

// Each turn is sent whole; the engine's prefix cache makes what was said before cheap. A conversation that
// does not fit the context is refused, never cut. Ctrl-C stops an answer and keeps what was said so far, and
// at the prompt drops the line; twice in a row there it ends the conversation, as Ctrl-D does.
//
// Words that begin with a slash are handled in chat_commands.cc.
class Chat {
 public:
  // Both outlive the chat. Requires: a tokenizer, and a chat template unless config.raw.
  Chat(Engine& engine, BlockedSignals& signals, ChatConfig config);

  // Returns when the person leaves; an exit code.
  int run();

 private:
  struct Command;
  struct Input {
    std::string text;
    bool is_block = false;  // never a command
  };
  struct Attachment {
    std::string path;
    std::string text;
  };

  static const std::vector<Command>& commands();
  static LineEditor::Completer make_completer();

  LineEditor::Event read_input(Input& input);
  void remember(const std::string& message);
  void load_history();

  // Asks what the person said, files included, and answers.
  void say_to_model(std::string message);
  std::string with_attachments(std::string message) const;
  // Answers the last question. False: there is no answer.
  bool answer(std::optional<std::uint64_t> seed = {});
  Result<Generation> generate_answer(std::optional<std::uint64_t> seed);
  Result<std::vector<TokenId>> encode() const;
  void report_end(const Generation& generation) const;

  static bool is_command(std::string_view text);
  // False: the person leaves.
  bool run_command(std::string_view text);
  void show_help(const std::string& argument);
  void clear(const std::string& argument);
  void undo(const std::string& argument);
  void retry(const std::string& argument);
  void edit(const std::string& argument);
  void attach(const std::string& argument);
  void show_or_set_system(const std::string& argument);
  void show_or_set_parameters(const std::string& argument);
  void show_tokens(const std::string& argument);
  void show_stats(const std::string& argument);
  void show_model(const std::string& argument);
  void save(const std::string& argument);
  void load(const std::string& argument);

  Engine& engine_;
  BlockedSignals& signals_;
  const ChatConfig config_;
  const TerminalAtExit terminal_;
  AnswerParameters parameters_;
  Conversation conversation_;
  std::vector<Attachment> attachments_;  // of the next message
  std::optional<Generation> last_;
  std::uint64_t num_retries_ = 0;  // of the last question
  std::optional<HistoryFile> history_;
  LineEditor editor_;
};

}  // namespace kvasir::cli
