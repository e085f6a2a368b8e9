// Conversations as files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/conversation.h"
#include "kvasir/result.h"

namespace kvasir::cli {

inline constexpr std::size_t kMaxConversationBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxConversationMessages = 10'000;

// A JSON array of {"role", "content"} as chat APIs take it; "stopped": true marks an answer that was stopped.
std::string to_json(const std::vector<Message>& messages);

// Errors (kBadFile): no such array, an unknown role or member, a text that is not a string, a limit; with the
// number of the message.
Result<std::vector<Message>> parse_conversation(std::string_view json);

// Into a file that is new, empty or a conversation already, so that a slip of the hand costs no other file;
// only its owner may read it. Errors: kUsage for another file, kMachine.
Status save_conversation(const std::string& path, const std::vector<Message>& messages);

// Errors: as parse_conversation and read_file, naming the file.
Result<std::vector<Message>> load_conversation(const std::string& path);

}  // namespace kvasir::cli
