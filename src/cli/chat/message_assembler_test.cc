#include "cli/chat/message_assembler.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>

namespace kvasir::cli::message_assembler_test {
namespace {

// The message that the lines make; nothing when it is not whole with the last of them, or was so before.
std::optional<std::string> message_of(std::initializer_list<std::string_view> lines) {
  MessageAssembler message;
  std::size_t num_lines = 0;
  for (const std::string_view line : lines) {
    const bool is_whole = message.add(line);
    if (is_whole != (++num_lines == lines.size())) return std::nullopt;
  }
  return message.text();
}

TEST(MessageAssembler, ALineIsAMessage) {
  EXPECT_EQ(message_of({"hello"}), "hello");
  EXPECT_EQ(message_of({""}), "");
  EXPECT_EQ(message_of({"say \"\"\" to me"}), "say \"\"\" to me");
}

TEST(MessageAssembler, ThreeQuotesHoldABlock) {
  EXPECT_EQ(message_of({"\"\"\"", "one", "", "two", "\"\"\""}), "one\n\ntwo");
  EXPECT_EQ(message_of({"\"\"\"one", "two\"\"\""}), "one\ntwo");
  EXPECT_EQ(message_of({"\"\"\"one\"\"\""}), "one");
  EXPECT_EQ(message_of({"\"\"\"", "", "x", "\"\"\" "}), "\nx");
  EXPECT_EQ(message_of({"\"\"\"", "a \\", "\"\"\""}), "a \\") << "a backslash means itself there";
}

TEST(MessageAssembler, ABackslashGoesOn) {
  EXPECT_EQ(message_of({"one\\", "two\\", "three"}), "one\ntwo\nthree");
  EXPECT_EQ(message_of({"one\\", "\"\"\""}), "one\n\"\"\"");
}

TEST(MessageAssembler, ABlockIsNoCommand) {
  MessageAssembler block;
  block.add("\"\"\"/clear\"\"\"");
  EXPECT_TRUE(block.is_block());
  EXPECT_EQ(message_of({"/system \"\"\"", "one", "two", "\"\"\""}), "/system one\ntwo");
  MessageAssembler command;
  command.add("/system \"\"\"x\"\"\"");
  EXPECT_FALSE(command.is_block());
}

TEST(MessageAssembler, APasteIsWholeWhateverItsQuotes) {
  EXPECT_EQ(message_of({"\"\"\"Doc.\n\"\"\"\ndef f(): pass"}), "\"\"\"Doc.\n\"\"\"\ndef f(): pass");
}

}  // namespace
}  // namespace kvasir::cli::message_assembler_test
