#include "cli/chat/conversation_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text_file.h"
#include "cli/input_file.h"

namespace kvasir::cli {
namespace {

namespace dom = simdjson::dom;

std::unexpected<Error> bad_file(std::string message) {
  return make_error(ErrorKind::kBadFile, std::move(message));
}

Result<Message> parse_message(dom::element element, std::size_t number) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    return bad_file(fmt::format("message {}: must be an object with role and content", number));
  }
  Message message;
  bool has_role = false, has_content = false;
  for (const auto& [key, value] : object) {
    std::string_view text;
    if (key == "role" && value.get(text) == simdjson::SUCCESS) {
      has_role = true;
      message.role = text;
    } else if (key == "content" && value.get(text) == simdjson::SUCCESS) {
      has_content = true;
      message.content = text;
    } else if (key == "role" || key == "content") {
      return bad_file(fmt::format("message {}: {} must be a string", number, key));
    } else if (key != "stopped") {
      return bad_file(fmt::format("message {}: '{}' is no member of a message", number, printable(key)));
    } else if (value.get(message.was_stopped) != simdjson::SUCCESS) {
      return bad_file(fmt::format("message {}: stopped must be true or false", number));
    }
  }
  if (!has_role) return bad_file(fmt::format("message {}: role is missing", number));
  if (!has_content) return bad_file(fmt::format("message {}: content is missing", number));
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    return bad_file(fmt::format("message {}: role must be system, user or assistant, not '{}'", number,
                                printable(message.role)));
  }
  return message;
}

}  // namespace

std::string to_json(const std::vector<Message>& messages) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array();
  for (const Message& message : messages) {
    json.begin_object().member("role", message.role).member("content", message.content);
    if (message.was_stopped) json.member("stopped", true);
    json.end_object();
  }
  json.end_array();
  return out + "\n";
}

Result<std::vector<Message>> parse_conversation(std::string_view text) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root); error != simdjson::SUCCESS) {
    return bad_file(fmt::format("is no JSON: {}", simdjson::error_message(error)));
  }
  dom::array array;
  if (root.get(array) != simdjson::SUCCESS) return bad_file("must be an array of messages");
  if (array.size() > kMaxConversationMessages) {
    return bad_file(
        fmt::format("the limit is {} messages, this has {}", kMaxConversationMessages, array.size()));
  }
  std::vector<Message> messages;
  for (const dom::element element : array) {
    KVASIR_TRY(Message message, parse_message(element, messages.size() + 1));
    messages.push_back(std::move(message));
  }
  return messages;
}

Status save_conversation(const std::string& path, const std::vector<Message>& messages) {
  std::error_code ignored;
  const bool is_empty =
      std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) == 0;
  const bool is_other_file =
      std::filesystem::exists(path, ignored) && !is_empty && !load_conversation(path);
  if (is_other_file) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: exists and is no conversation; it stays as it is",
                                                     printable_line(path)));
  }
  return replace_text_file(path, to_json(messages), 0600);
}

Result<std::vector<Message>> load_conversation(const std::string& path) {
  KVASIR_CHECKED(check_readable(path));
  KVASIR_TRY(const std::string text, read_file(path, kMaxConversationBytes));
  auto messages = parse_conversation(text);
  if (!messages) return bad_file(fmt::format("{}: {}", printable_line(path), messages.error().message));
  return messages;
}

}  // namespace kvasir::cli
