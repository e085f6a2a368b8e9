#include "cli/chat/conversation.h"

#include <gtest/gtest.h>

namespace kvasir::cli::conversation_test {
namespace {

Conversation talked() {
  Conversation conversation;
  conversation.set_system("Be brief.");
  conversation.ask("one");
  conversation.answer("1", false);
  conversation.ask("two");
  conversation.answer("2", true);
  return conversation;
}

TEST(Conversation, UndoTakesBackAQuestionWithItsAnswer) {
  Conversation conversation = talked();
  EXPECT_EQ(conversation.num_exchanges(), 2u);
  EXPECT_EQ(conversation.undo(), "two");
  EXPECT_EQ(conversation.undo(), "one");
  EXPECT_EQ(conversation.undo(), std::nullopt);
  EXPECT_EQ(conversation.system(), "Be brief.");
}

TEST(Conversation, UndoTakesBackAQuestionWithoutAnAnswer) {
  Conversation conversation = talked();
  conversation.ask("three");
  EXPECT_TRUE(conversation.awaits_answer());
  EXPECT_EQ(conversation.undo(), "three");
  EXPECT_EQ(conversation.num_exchanges(), 2u);
}

TEST(Conversation, DroppingAnAnswerLeavesItsQuestion) {
  Conversation conversation = talked();
  EXPECT_TRUE(conversation.drop_answer());
  EXPECT_TRUE(conversation.awaits_answer());
  EXPECT_TRUE(conversation.drop_answer()) << "it has none already";
  EXPECT_EQ(conversation.messages().back().content, "two");
  EXPECT_FALSE(Conversation().drop_answer());
}

TEST(Conversation, TheSystemMessageComesChangesAndGoes) {
  Conversation conversation = talked();
  conversation.set_system("Be long.");
  EXPECT_EQ(conversation.messages()[0].content, "Be long.");
  EXPECT_EQ(conversation.messages().size(), 5u);
  conversation.set_system("");
  EXPECT_EQ(conversation.messages().size(), 4u);
  conversation.set_system("Again.");
  conversation.clear();
  EXPECT_EQ(conversation.messages(), std::vector<Message>({{"system", "Again."}}));
}

TEST(Conversation, OnlyQuestionsAndAnswersInTurnReplaceIt) {
  Conversation conversation = talked();
  const std::vector<Message> before = conversation.messages();
  EXPECT_EQ(conversation.replace({{"user", "a"}, {"user", "b"}}),
            "message 2: role must be assistant, not user");
  EXPECT_EQ(conversation.replace({{"assistant", "a"}}), "message 1: role must be user, not assistant");
  EXPECT_EQ(conversation.replace({{"user", "a"}, {"system", "b"}}),
            "message 2: role must be assistant, not system");
  EXPECT_EQ(conversation.messages(), before);
  EXPECT_EQ(conversation.replace({{"system", "s"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}}),
            std::nullopt);
  EXPECT_TRUE(conversation.awaits_answer());
  EXPECT_EQ(conversation.replace({}), std::nullopt);
}

}  // namespace
}  // namespace kvasir::cli::conversation_test
