#include "cli/chat/input_completion.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kvasir::cli::input_completion_test {
namespace {

using Candidates = std::vector<std::string>;

class InputCompletion : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "notes");
    for (const char* name : {"a.json", "ab.txt", ".hidden", "odd\x1b"}) std::ofstream(folder_ / name) << "x";
    ::setenv("HOME", folder_.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Candidates complete(const std::string& line) const { return complete_input(line, commands_).candidates; }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                        ("kvasir-completion-" + std::to_string(::getpid()));
  const std::vector<CompletableCommand> commands_ = {
      {"/save", true}, {"/set", false, {"seed", "stop", "top_k"}}, {"/stats"}};
};

TEST_F(InputCompletion, NamesOfCommands) {
  EXPECT_EQ(complete("/"), Candidates({"/save", "/set", "/stats"}));
  EXPECT_EQ(complete("/st"), Candidates({"/stats"}));
  EXPECT_EQ(complete("/x"), Candidates());
  EXPECT_EQ(complete("st"), Candidates()) << "a message";
}

TEST_F(InputCompletion, WordsBehindACommand) {
  EXPECT_EQ(complete("/set s"), Candidates({"seed", "stop"}));
  EXPECT_EQ(complete("/stats s"), Candidates());
  EXPECT_EQ(complete_input("/set  s", commands_).begin, 6u);
}

TEST_F(InputCompletion, NamesOfFilesBehindACommandThatTakesOne) {
  const std::string folder = folder_.string() + "/";
  EXPECT_EQ(complete("/save " + folder),
            Candidates({folder + "a.json", folder + "ab.txt", folder + "notes/"}));
  EXPECT_EQ(complete("/save " + folder + ".h"), Candidates({folder + ".hidden"}));
  EXPECT_EQ(complete("/save ~/n"), Candidates({"~/notes/"}));
  EXPECT_EQ(complete("/save " + folder + "no/such"), Candidates());
}

TEST_F(InputCompletion, WhatAllBeginWith) {
  EXPECT_EQ(common_prefix(Candidates({"stop", "start"})), "st");
  EXPECT_EQ(common_prefix(Candidates({"one"})), "one");
  EXPECT_EQ(common_prefix({}), "");
  EXPECT_EQ(common_prefix(Candidates({"a\xC3\xA4", "a\xC3\xA9"})), "a") << "half a character is none";
}

TEST_F(InputCompletion, ATildeIsTheHomeFolder) {
  EXPECT_EQ(expand_home("~/x"), folder_.string() + "/x");
  EXPECT_EQ(expand_home("a~/x"), "a~/x");
}

}  // namespace
}  // namespace kvasir::cli::input_completion_test
