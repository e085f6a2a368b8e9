#include "cli/chat/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace kvasir::cli {

void Conversation::set_system(std::string_view text) {
  if (num_system() > 0) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::string(text)});
}

std::string_view Conversation::system() const {
  return !messages_.empty() && messages_[0].role == "system" ? messages_[0].content : std::string_view();
}

void Conversation::ask(std::string question) {
  CHECK(!awaits_answer());
  messages_.push_back({"user", std::move(question)});
}

void Conversation::answer(std::string text, bool was_stopped) {
  CHECK(awaits_answer());
  messages_.push_back({"assistant", std::move(text), was_stopped});
}

bool Conversation::awaits_answer() const { return !messages_.empty() && messages_.back().role == "user"; }

std::size_t Conversation::num_exchanges() const { return (messages_.size() - num_system() + 1) / 2; }

std::optional<std::string> Conversation::undo() {
  if (!drop_answer()) return std::nullopt;
  std::string question = std::move(messages_.back().content);
  messages_.pop_back();
  return question;
}

bool Conversation::drop_answer() {
  if (messages_.size() == num_system()) return false;
  if (!awaits_answer()) messages_.pop_back();
  return true;
}

void Conversation::clear() { messages_.resize(num_system()); }

std::optional<std::string> Conversation::replace(std::vector<Message> messages) {
  std::string_view expected = "user";
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string_view role = messages[i].role;
    if (i == 0 && role == "system") {
      if (messages[i].content.empty()) return "message 1: the system message is empty";
      continue;
    }
    if (role != expected) return fmt::format("message {}: role must be {}, not {}", i + 1, expected, role);
    expected = role == "user" ? "assistant" : "user";
  }
  messages_ = std::move(messages);
  return std::nullopt;
}

}  // namespace kvasir::cli
