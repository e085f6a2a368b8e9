#include "engine/guided_choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide_fixture.h"

namespace kvasir::guide_test {
namespace {

class GuidedChoiceTest : public GuideFixture {};

TEST_F(GuidedChoiceTest, StopTokensMayComeWhereTheGuideMayEndAndNowhereElse) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kRegex, .text = "[0-9]{2,}"}, {kEnd, byte_token('7')});
  EXPECT_FALSE(allows(choice, kEnd));
  EXPECT_FALSE(allows(choice, byte_token('7'))) << "a stop token, although its text would fit";
  EXPECT_TRUE(allows(choice, byte_token('6')));
  push(choice, "12");
  EXPECT_TRUE(allows(choice, kEnd));
  EXPECT_TRUE(allows(choice, byte_token('7')));
  EXPECT_TRUE(choice.is_accepting());
  EXPECT_FALSE(choice.must_end()) << "more digits may follow";
}

TEST_F(GuidedChoiceTest, AChoiceMustEndWithItsLastCharacter) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kChoice, .choices = {"yes", "yes!"}});
  choice.push(kFirstWord, 3);
  EXPECT_TRUE(choice.is_accepting());
  EXPECT_FALSE(choice.must_end());
  push(choice, "!");
  EXPECT_TRUE(choice.must_end());
  EXPECT_FALSE(choice.error());
}

TEST_F(GuidedChoiceTest, GuessesAreCutBeforeWhatMayNotComeOrEndsTheAnswer) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kRegex, .text = "(yes|no)[0-9]+"}, {kEnd, byte_token('7')});
  const TokenId yes = kFirstWord, no = kFirstWord + 1;
  EXPECT_EQ(choice.num_possible({}), 0U);
  EXPECT_EQ(choice.num_possible(std::vector{yes, byte_token('1'), byte_token('2')}), 3U);
  EXPECT_EQ(choice.num_possible(std::vector{yes, no, byte_token('1')}), 1U);
  EXPECT_EQ(choice.num_possible(std::vector{yes, byte_token('1'), byte_token('7'), byte_token('1')}), 2U);
  EXPECT_EQ(choice.num_possible(std::vector{yes, byte_token('1'), kEnd}), 2U);
  EXPECT_TRUE(allows(choice, no)) << "nothing has come";
  GuidedChoice short_one = choice_of({.kind = Guide::Kind::kRegex, .text = "no[0-9]"}, {});
  EXPECT_EQ(short_one.num_possible(std::vector{no, byte_token('1'), byte_token('2')}), 1U) << "nothing may follow \"no1\"";
}

TEST_F(GuidedChoiceTest, GuessesMayBeAddedOneByOne) {
  const Guide guide{.kind = Guide::Kind::kRegex, .text = "a[bc]a[bc][0-9]"};
  GuidedChoice choice = choice_of(guide), whole = choice_of(guide);
  const std::vector<TokenId> guesses = {byte_token('a'), byte_token('b'), byte_token('a'), byte_token('c'), byte_token('7')};
  const auto words_of = [](const sampling::AllowedTokens& allowed) {
    return std::vector<std::uint64_t>(allowed.words().begin(), allowed.words().end());
  };
  std::vector<std::vector<std::uint64_t>> views;
  for (const sampling::AllowedTokens& allowed : whole.allowed_at_each(guesses)) views.push_back(words_of(allowed));
  for (std::size_t n = 0; n <= guesses.size(); ++n) {
    const auto allowed = choice.allowed_behind(std::span(guesses).first(n));
    ASSERT_TRUE(allowed);
    EXPECT_EQ(words_of(*allowed), views[n]) << n;
  }
  EXPECT_TRUE(choice.has_states_for(guesses)) << "although the answer ends with them";
  const std::vector<TokenId> others = {byte_token('a'), byte_token('c')};
  EXPECT_EQ(words_of(*choice.allowed_behind(others)), views[2]);
  EXPECT_FALSE(choice.allowed_behind(std::vector{byte_token('a'), byte_token('x')}));
}

TEST_F(GuidedChoiceTest, BehindGuessesComesWhatComesBehindTheirTokens) {
  const Guide guide{.kind = Guide::Kind::kRegex, .text = "a[bc]a[bc][0-9]"};
  GuidedChoice choice = choice_of(guide), plain = choice_of(guide);
  const std::vector<TokenId> guesses = {byte_token('a'), byte_token('b'), byte_token('a')};
  const auto views = choice.allowed_at_each(guesses);
  ASSERT_EQ(views.size(), 4U);
  EXPECT_EQ(views[0].only(), kNoToken) << "\"ab\" is a token too";
  EXPECT_TRUE(holds(views[1], byte_token('b')) && holds(views[1], byte_token('c')));
  EXPECT_FALSE(holds(views[1], byte_token('a')));
  EXPECT_TRUE(holds(views[2], byte_token('a')) && holds(views[2], kFirstWord + 4));
  EXPECT_FALSE(holds(views[3], kEnd));
  push(choice, "aba");  // as they were guessed
  push(choice, "c");    // and the token behind them
  for (const char byte : std::string_view("abac")) {
    static_cast<void>(plain.allowed());
    push(plain, std::string_view(&byte, 1));
  }
  EXPECT_EQ(choice.num_forced(), plain.num_forced());
  EXPECT_TRUE(allows(choice, byte_token('7')));
  EXPECT_FALSE(allows(choice, byte_token('a')));
}

TEST_F(GuidedChoiceTest, AWrongGuessLeavesNothingBehind) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kRegex, .text = "(ax[0-9]|bz{3}[a-f])"});
  static_cast<void>(choice.allowed_at_each(std::vector{byte_token('a'), byte_token('x')}));
  push(choice, "b");
  EXPECT_EQ(choice.allowed().only(), byte_token('z'));
  std::vector<TokenId> run(8);
  const std::vector<sched::SampledToken> sampled = {{.token = byte_token('z')}, {.token = byte_token('z')}};
  ASSERT_EQ(choice.forced_behind(sampled, run), 1U);
  EXPECT_EQ(run[0], byte_token('z'));
  EXPECT_EQ(choice.allowed().only(), byte_token('z')) << "nothing of it has come";
}

TEST_F(GuidedChoiceTest, AnObjectMayHaveAThousandOptionalMembers) {
  std::string properties;
  for (int i = 0; i < 1000; ++i) properties += fmt::format("{}\"p{}\":{{\"type\":\"integer\"}}", i == 0 ? "" : ",", i);
  GuidedChoice choice = choice_of({.text = "{\"properties\":{" + properties + R"(},"type":"object","additionalProperties":false})",
                                   .is_compact = true});
  push(choice, R"({"p5":1,"p99)");
  EXPECT_FALSE(choice.error());
  EXPECT_TRUE(allows(choice, byte_token('"')) && allows(choice, byte_token('0')));
  push(choice, R"(":2})");
  EXPECT_TRUE(choice.must_end());
}

TEST_F(GuidedChoiceTest, OtherControlTokensNeverCome) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kRegex, .text = ".*"});
  EXPECT_TRUE(allows(choice, kEnd));
  EXPECT_FALSE(allows(choice, kThink));
  EXPECT_FALSE(allows(choice, 0));
  EXPECT_TRUE(allows(choice, kFirstWord + 5)) << "a word that looks like a control token is a word";
}

TEST_F(GuidedChoiceTest, KnowsWhichPrefixesAreTextsOfTheGuide) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kRegex, .text = "(ab)*c?"});
  push(choice, "a");
  EXPECT_TRUE(choice.accepts_prefix(0));
  EXPECT_FALSE(choice.accepts_prefix(1));
  push(choice, "b");
  choice.push(kFirstWord + 4, 2);  // "ab", one token
  EXPECT_TRUE(choice.accepts_prefix(2));
  EXPECT_FALSE(choice.accepts_prefix(3)) << "inside of a token";
  EXPECT_TRUE(choice.accepts_prefix(4));
}

TEST_F(GuidedChoiceTest, ReasoningThatIsOpenHasToBeClosedFirst) {
  Guide guide = {.kind = Guide::Kind::kChoice, .choices = {"yes"}};
  guide.reasoning = Guide::Reasoning{.close = "</think>"};
  GuidedChoice choice = choice_of(guide);
  EXPECT_FALSE(allows(choice, kEnd));
  push(choice, "no </think");
  EXPECT_FALSE(allows(choice, byte_token('>'))) << "the mark as plain text";
  EXPECT_TRUE(allows(choice, kThought));
  choice.push(kThought, 8);
  EXPECT_FALSE(choice.error());
  push(choice, "\n\n");
  EXPECT_FALSE(allows(choice, kFirstWord + 1));
  choice.push(kFirstWord, 3);
  EXPECT_TRUE(choice.must_end());
}

TEST_F(GuidedChoiceTest, ReasoningMayBeLeftOut) {
  Guide guide = {.kind = Guide::Kind::kChoice, .choices = {"yes"}};
  guide.reasoning = Guide::Reasoning{.open = "[think]", .close = "[/think]"};
  GuidedChoice without = choice_of(guide);
  without.push(kFirstWord, 3);
  EXPECT_TRUE(without.must_end());
  GuidedChoice with = choice_of(guide);
  push(with, "[think]no, [maybe][/think]\nyes");
  EXPECT_FALSE(with.error());
  EXPECT_TRUE(with.must_end());
}

// The last 21 characters tell 2^20 states apart, and a store has room for 30,000.
const Guide kManyStates{.kind = Guide::Kind::kRegex, .text = "[xy]*x[xy]{20}z"};

TEST_F(GuidedChoiceTest, AnswersOutliveTheStatesOfTheirGuide) {
  const CompiledGuide first = *compiler_.compile(kManyStates, "");
  std::minstd_rand random(7);
  std::vector<GuidedChoice> choices;
  for (int i = 0; i < 20; ++i) choices.push_back(choice_of(kManyStates));  // all begin with the same guide
  for (GuidedChoice& choice : choices) {
    std::string text;
    while (text.size() < 3'000) {
      const bool may_end = text.size() > 20 && text[text.size() - 21] == 'x';
      ASSERT_EQ(allows(choice, byte_token('z')), may_end) << text.size();
      ASSERT_FALSE(allows(choice, byte_token('a')));
      ASSERT_FALSE(choice.error());
      text += random() % 2 == 0 ? 'x' : 'y';
      choice.push(byte_token(text.back()), 1);
    }
    const std::string end = "x" + std::string(20, 'y') + "z";
    push(choice, end);
    EXPECT_TRUE(choice.is_accepting());
    EXPECT_TRUE(choice.accepts_prefix(text.size() + end.size()));
    EXPECT_FALSE(choice.accepts_prefix(text.size() + end.size() - 1));
  }
  EXPECT_TRUE(first->is_exhausted()) << "else this test shows nothing";
  EXPECT_FALSE((*compiler_.compile(kManyStates, ""))->is_exhausted());
}

TEST_F(GuidedChoiceTest, GuessesOutliveTheStatesOfTheirGuide) {
  std::minstd_rand random(8);
  std::vector<GuidedChoice> choices;
  for (int i = 0; i < 20; ++i) choices.push_back(choice_of(kManyStates));
  for (GuidedChoice& choice : choices) {
    std::string text;
    while (text.size() < 3'000) {
      std::vector<TokenId> guesses;
      for (int i = 0; i < 8; ++i) guesses.push_back(byte_token(random() % 2 == 0 ? 'x' : 'y'));
      const auto views = choice.allowed_at_each(guesses);
      ASSERT_FALSE(choice.error());
      for (std::size_t i = 0; i <= guesses.size(); ++i) {
        const bool may_end = text.size() > 20 && text[text.size() - 21] == 'x';
        ASSERT_EQ(holds(views[i], byte_token('z')), may_end) << text.size();
        if (i < guesses.size()) text += guesses[i] == byte_token('x') ? 'x' : 'y';
      }
      for (const TokenId guess : guesses) choice.push(guess, 1);
    }
  }
}

TEST_F(GuidedChoiceTest, GrammarsCallThemselves) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kGbnf, .text = "root ::= \"(\" root? \")\""});
  push(choice, "((");
  EXPECT_FALSE(allows(choice, kEnd));
  push(choice, "))");
  EXPECT_TRUE(choice.must_end());
}

TEST_F(GuidedChoiceTest, ExcludedTextsDoNotOccurAcrossTokens) {
  GuidedChoice choice = choice_of({.kind = Guide::Kind::kText, .excluded = {"cab", "yes"}});
  EXPECT_FALSE(allows(choice, kFirstWord));
  push(choice, "c");
  EXPECT_FALSE(allows(choice, kFirstWord + 4)) << "ab behind c";
  push(choice, "c.");
  EXPECT_TRUE(allows(choice, kFirstWord + 4));
  EXPECT_TRUE(allows(choice, kEnd));
}

}  // namespace
}  // namespace kvasir::guide_test
