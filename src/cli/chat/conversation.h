// The conversation so far.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
  bool was_stopped = false;  // an answer that a person ended

  bool operator==(const Message&) const = default;
};

// Perhaps a system message, then questions and answers in turn; only while a question is being answered does
// it end with one that has no answer. It knows no file, no model and no tokens.
//
// Thread safety: none.
class Conversation {
 public:
  // Empty: no system message.
  void set_system(std::string_view text);
  std::string_view system() const;

  // Requires: the last question has its answer.
  void ask(std::string question);
  // Requires: the last question has none.
  void answer(std::string text, bool was_stopped);

  bool awaits_answer() const;
  std::size_t num_exchanges() const;

  // The last question, taken back with its answer; nothing: none was asked.
  std::optional<std::string> undo();
  // Takes back the last answer alone, so that its question may be answered anew. False: nothing was asked.
  bool drop_answer();
  // All but the system message.
  void clear();

  const std::vector<Message>& messages() const { return messages_; }
  // Error: what a conversation is not, naming the message by its number from 1; nothing changes then.
  std::optional<std::string> replace(std::vector<Message> messages);

 private:
  std::size_t num_system() const { return system().empty() ? 0 : 1; }

  std::vector<Message> messages_;
};

}  // namespace kvasir::cli
