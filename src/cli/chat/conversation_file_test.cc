#include "cli/chat/conversation_file.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace kvasir::cli::conversation_file_test {
namespace {

class ConversationFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

 private:
  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                        ("kvasir-conversation-" + std::to_string(::getpid()));
};

std::string error_of(std::string_view json) {
  const auto parsed = parse_conversation(json);
  return parsed ? "" : parsed.error().message;
}

TEST_F(ConversationFile, WhatIsSavedLoadsAsItWas) {
  const std::vector<Message> messages = {{"system", "Be brief."},
                                         {"user", "quotes \" and\nlines \x01 \xE5\xA4\xA9"},
                                         {"assistant", "cut", true}};
  ASSERT_TRUE(save_conversation(path("talk.json"), messages));
  const auto loaded = load_conversation(path("talk.json"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, messages);
  struct stat status = {};
  ASSERT_EQ(::stat(path("talk.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ConversationFile, SavingReplacesAConversationButNoOtherFile) {
  write("notes.txt", "my notes");
  EXPECT_FALSE(save_conversation(path("notes.txt"), {}));
  EXPECT_TRUE(std::ifstream(path("notes.txt")).good());
  write("empty", "");
  EXPECT_TRUE(save_conversation(path("empty"), {}));
  EXPECT_TRUE(save_conversation(path("empty"), {{"user", "x"}}));
  EXPECT_FALSE(save_conversation(path("no/such/folder"), {}));
}

TEST_F(ConversationFile, ErrorsNameThePlace) {
  EXPECT_NE(error_of("{").find("is no JSON"), std::string::npos);
  EXPECT_EQ(error_of("{}"), "must be an array of messages");
  EXPECT_EQ(error_of("[1]"), "message 1: must be an object with role and content");
  EXPECT_EQ(error_of(R"([{"role":"user","content":"a"},{"role":"tool","content":""}])"),
            "message 2: role must be system, user or assistant, not 'tool'");
  EXPECT_EQ(error_of(R"([{"role":"user"}])"), "message 1: content is missing");
  EXPECT_EQ(error_of(R"([{"content":"x"}])"), "message 1: role is missing");
  EXPECT_EQ(error_of(R"([{"role":"user","content":[]}])"), "message 1: content must be a string");
  EXPECT_EQ(error_of(R"([{"role":"user","content":"","stopped":1}])"),
            "message 1: stopped must be true or false");
  EXPECT_EQ(error_of(R"([{"role":"user","content":"","name\u001b":1}])"),
            "message 1: 'name\\x1b' is no member of a message");
  write("bad.json", "[{}]");
  EXPECT_EQ(load_conversation(path("bad.json")).error().message,
            path("bad.json") + ": message 1: role is missing");
}

TEST_F(ConversationFile, SizesAreBounded) {
  std::string many = "[";
  for (std::size_t i = 0; i <= kMaxConversationMessages; ++i) many += i == 0 ? "0" : ",0";
  EXPECT_EQ(error_of(many + "]"), "the limit is 10000 messages, this has 10001");
  write("large.json", std::string(kMaxConversationBytes + 1, ' '));
  EXPECT_NE(load_conversation(path("large.json")).error().message.find("the limit is"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::cli::conversation_file_test
