// A conversation at the terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/blocked_signals.h"
#include "cli/generation.h"
#include "cli/line_editor.h"
#include "cli/sampling_options.h"
#include "kvasir/engine.h"
#include "text/template/chat_template.h"

namespace kvasir::cli {

struct ChatConfig {
  std::string system;  // system message; empty: none
  SamplingOptions sampling;
  KvParams kv;
  bool raw = false;            // each line is a text of its own that the model continues; no memory
  bool parse_special = false;  // with raw: control tokens in a line mean themselves
};

// Each turn is sent whole; the engine's prefix cache makes what was said before cheap. Ctrl-C stops an answer
// and keeps what was said so far; Ctrl-D ends the conversation.
class Chat {
 public:
  // All three outlive the chat. Requires: a tokenizer, and a chat template unless config.raw.
  Chat(Engine& engine, BlockedSignals& signals, LineEditor& editor, ChatConfig config);

  // Returns when the person leaves; an exit code.
  int run();

 private:
  bool handle_command(std::string_view line);  // false: /exit
  void answer(const std::string& line);
  Result<std::vector<TokenId>> encode(const std::string& line);
  void clear();
  void print_stats() const;
  void save(const std::string& path) const;

  Engine& engine_;
  BlockedSignals& signals_;
  LineEditor& editor_;
  const ChatConfig config_;
  std::vector<text::ChatMessage> messages_;
  Generation last_;
};

}  // namespace kvasir::cli
