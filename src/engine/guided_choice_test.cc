#include "engine/guided_choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/process_memory.h"
#include "engine/active_request.h"
#include "engine/guide_compiler.h"

namespace kvasir::guided_choice_test {
namespace {

constexpr TokenId kEnd = 2;        // control tokens
constexpr TokenId kThink = 3;
constexpr TokenId kThought = 4;
constexpr TokenId kFirstByte = 5;  // one token for each byte
constexpr TokenId kFirstWord = kFirstByte + 256;
const std::vector<std::string> kWords = {"yes", "no", "maybe", "12", "ab", "<|x|>"};

std::unique_ptr<text::Tokenizer> make_tokenizer() {
  text::VocabData data;
  data.model = "llama";
  const auto add = [&data](const std::string& token, text::TokenType type) {
    data.tokens.push_back(token);
    data.scores.push_back(0.0f);
    data.token_types.push_back(static_cast<std::int32_t>(type));
  };
  add("<unk>", text::TokenType::kUnknown);
  add("<s>", text::TokenType::kControl);
  add("<|end|>", text::TokenType::kControl);
  add("<think>", text::TokenType::kControl);
  add("</think>", text::TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string token = "<0x..>";
    token[3] = kHex[static_cast<std::size_t>(byte) / 16];
    token[4] = kHex[static_cast<std::size_t>(byte) % 16];
    add(token, text::TokenType::kByte);
  }
  for (const std::string& word : kWords) add(word, text::TokenType::kNormal);
  data.unknown = 0;
  data.bos = 1;
  data.eos = kEnd;
  return text::Tokenizer::create(std::move(data)).value();
}

TokenId byte_token(char byte) { return kFirstByte + static_cast<TokenId>(static_cast<unsigned char>(byte)); }

class GuidedChoiceTest : public ::testing::Test {
 protected:
  GuidedChoice choice_of(const Guide& guide, std::vector<TokenId> stops = {kEnd}) {
    auto compiled = compiler_.compile(guide, "");
    EXPECT_TRUE(compiled) << compiled.error().message;
    return choice_of(*compiled, stops);
  }
  GuidedChoice choice_of(CompiledGuide guide, std::vector<TokenId> stops = {kEnd}) {
    return {std::move(guide), "guide", stops, [this](const CompiledGuide& used) { return compiler_.renewed(used); }};
  }
  static bool allows(GuidedChoice& choice, TokenId token) { return holds(choice.allowed(), token); }
  static bool holds(const sampling::AllowedTokens& allowed, TokenId token) {
    const auto words = allowed.words();
    return (words[static_cast<std::size_t>(token) / 64] >> (static_cast<std::size_t>(token) % 64) & 1) != 0;
  }
  void push(GuidedChoice& choice, std::string_view text) const {
    for (const char byte : text) choice.push(byte_token(byte), 1);
  }
  Error error_of(const Guide& guide) {
    auto compiled = compiler_.compile(guide, "");
    EXPECT_FALSE(compiled);
    return compiled ? Error{} : compiled.error();
  }

  std::unique_ptr<text::Tokenizer> tokenizer_ = make_tokenizer();
  GuideCompiler compiler_{tokenizer_.get(), std::int64_t{64} << 20};
};

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

TEST_F(GuidedChoiceTest, ErrorsNameTheFieldAndThePlace) {
  const Error schema = error_of({.text = R"({"properties":{"a":{"$ref":"#/nowhere"}}})", .field = "response_format"});
  EXPECT_EQ(schema.param, "response_format");
  EXPECT_TRUE(schema.message.starts_with("response_format: ")) << schema.message;
  EXPECT_NE(schema.message.find("/properties/a"), std::string::npos) << schema.message;
  EXPECT_EQ(error_of({.kind = Guide::Kind::kRegex, .text = "(a"}).param, "guide");
  EXPECT_EQ(error_of({.kind = Guide::Kind::kRegex, .text = "$"}).kind, ErrorKind::kUsage) << "only the empty text";
  EXPECT_EQ(error_of({.kind = Guide::Kind::kChoice}).kind, ErrorKind::kUsage);
  EXPECT_EQ(error_of({.kind = Guide::Kind::kChoice, .choices = {"a", ""}}).kind, ErrorKind::kUsage);
  EXPECT_EQ(error_of({.kind = Guide::Kind::kRegex, .text = std::string(17 << 10, 'a')}).kind, ErrorKind::kUnmet);
}

TEST_F(GuidedChoiceTest, CompilesOnceForManyRequests) {
  const Guide guide = {.text = R"({"type":"object"})"};
  EXPECT_EQ(*compiler_.compile(guide, ""), *compiler_.compile(guide, ""));
  Guide other = guide;
  other.kind = Guide::Kind::kRegex;
  other.text = "a+";
  EXPECT_NE(*compiler_.compile(guide, ""), *compiler_.compile(other, ""));
}

TEST_F(GuidedChoiceTest, PreparesOnAnotherThreadAndAtOnceWhatIsKnown) {
  const Guide guide = {.text = R"({"type":"array"})"};
  std::promise<std::thread::id> prepared;
  compiler_.prepare(guide, "", {}, [&](const Result<CompiledGuide>& compiled) {
    EXPECT_TRUE(compiled);
    prepared.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(prepared.get_future().get(), std::this_thread::get_id());
  std::thread::id at_once;
  compiler_.prepare(guide, "", {}, [&](const auto&) { at_once = std::this_thread::get_id(); });
  EXPECT_EQ(at_once, std::this_thread::get_id());
}

TEST_F(GuidedChoiceTest, CompilesNothingForAClientThatHasLeft) {
  std::stop_source left;
  left.request_stop();
  std::promise<ErrorKind> told;
  compiler_.prepare({.kind = Guide::Kind::kRegex, .text = "(a"}, "", left.get_token(),
                    [&](const auto& compiled) { told.set_value(compiled.error().kind); });
  EXPECT_EQ(told.get_future().get(), ErrorKind::kCancelled);
}

TEST_F(GuidedChoiceTest, ATenantWithManyGuidesLosesItsOwn) {
  GuideCompiler small(tokenizer_.get(), 4 << 20);
  const auto guide_of = [](int i) {
    return Guide{.kind = Guide::Kind::kRegex, .text = "[a-z]{" + std::to_string(i) + "}" + std::string(8 << 10, 'a')};
  };
  ASSERT_TRUE(small.compile(guide_of(1), "calm"));
  for (int i = 2; i < 60; ++i) ASSERT_TRUE(small.compile(guide_of(i), "eager"));
  EngineStats before, after;
  small.describe(before);
  EXPECT_LE(before.guide_bytes, 4 << 20);
  ASSERT_TRUE(small.compile(guide_of(1), "calm"));
  small.describe(after);
  EXPECT_EQ(after.num_guides_known, before.num_guides_known + 1) << "it is still there";
  ASSERT_TRUE(small.compile(guide_of(2), "eager"));
  small.describe(after);
  EXPECT_EQ(after.num_guides_compiled, before.num_guides_compiled + 1) << "it has gone";
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

TEST_F(GuidedChoiceTest, GuidesInUseAreBoundedToo) {
  GuideCompiler small(tokenizer_.get(), 1);
  std::vector<CompiledGuide> held;
  Result<CompiledGuide> compiled = CompiledGuide();
  for (int i = 1; i < 20 && compiled; ++i) {
    compiled = small.compile({.kind = Guide::Kind::kRegex, .text = "[a-z]{" + std::to_string(i) + "}"}, "");
    if (!compiled) break;
    static_cast<void>(choice_of(*compiled).allowed());  // it grows with use
    held.push_back(*compiled);
  }
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().kind, ErrorKind::kUnavailable);
  held.clear();
  EXPECT_TRUE(small.compile({.kind = Guide::Kind::kRegex, .text = "b"}, "")) << "those who held them have gone";
}

// A schema of its own for each number, of about 40 members.
Guide large_guide(int number) {
  std::string schema = R"({"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"const":)";
  schema += std::to_string(number) + "}";
  for (int i = 0; i < 40; ++i) {
    schema += fmt::format(R"(,"p{}_{}":{})", number, i, (i % 2 == 0 ? R"({"type":"string"})" : R"({"type":"integer"})"));
  }
  return {.text = schema + "}}"};
}

TEST_F(GuidedChoiceTest, AGuideCountsWhatTheAllocatorGivesForIt) {
  if (heap_bytes() == 0) GTEST_SKIP() << "the allocator of a sanitizer counts nothing";
  GuideCompiler compiler(tokenizer_.get(), std::int64_t{256} << 20);
  ASSERT_TRUE(compiler.compile(large_guide(0), ""));  // makes the vocabulary
  const std::int64_t before_bytes = heap_bytes();
  std::int64_t counted_bytes = 0;
  for (int i = 1; i <= 40; ++i) {
    const auto guide = compiler.compile(large_guide(i), "");
    ASSERT_TRUE(guide);
    GuidedChoice choice = choice_of(*guide);
    for (const char byte : fmt::format(R"({{"id":{},"p{}_0":"a)", i, i)) {
      static_cast<void>(choice.allowed());
      choice.push(byte_token(byte), 1);
    }
    counted_bytes += static_cast<std::int64_t>((*guide)->size_bytes());
  }
  const auto held_bytes = static_cast<double>(heap_bytes() - before_bytes);
  EXPECT_GT(static_cast<double>(counted_bytes), 0.9 * held_bytes);
  EXPECT_LT(static_cast<double>(counted_bytes), 1.5 * held_bytes);
}

TEST_F(GuidedChoiceTest, TheProcessGrowsByNoMoreThanGuidesMayTake) {
  constexpr std::int64_t kMaxBytes = 8 << 20;
  GuideCompiler compiler(tokenizer_.get(), kMaxBytes);
  ASSERT_TRUE(compiler.compile(large_guide(0), ""));
  trim_heap();
  const std::int64_t before_bytes = rss_bytes();
  for (int i = 1; i <= 300; ++i) ASSERT_TRUE(compiler.compile(large_guide(i), ""));
  EXPECT_LT(rss_bytes() - before_bytes, kMaxBytes + (4 << 20));
}

TEST_F(GuidedChoiceTest, NobodyWaitsForACompilerThatHasClosed) {
  std::atomic<int> num_told = 0;
  for (int i = 1; i < 30; ++i) {
    compiler_.prepare({.kind = Guide::Kind::kRegex, .text = "[a-z]{" + std::to_string(i) + "}"}, "", {},
                      [&](const auto&) { ++num_told; });
  }
  compiler_.close();
  EXPECT_EQ(num_told, 29);
  compiler_.prepare({.kind = Guide::Kind::kRegex, .text = "other"}, "", {}, [&](const auto& compiled) {
    EXPECT_EQ(compiled.error().kind, ErrorKind::kUnavailable);
    ++num_told;
  });
  EXPECT_EQ(num_told, 30);
}

TEST_F(GuidedChoiceTest, RefusalsAreCountedByKeyword) {
  EXPECT_FALSE(compiler_.compile({.text = R"({"properties":{"a":{"$ref":"#/nowhere"}}})"}, ""));
  EXPECT_FALSE(compiler_.compile({.kind = Guide::Kind::kRegex, .text = "(a"}, ""));
  EngineStats stats;
  compiler_.describe(stats);
  EXPECT_EQ(stats.num_guides_refused, 2);
  ASSERT_EQ(stats.guide_refusals.size(), 2u);
  EXPECT_EQ(stats.guide_refusals[0].keyword, "$ref");
  EXPECT_EQ(stats.guide_refusals[1].keyword, "regex");
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

// What the scheduler says of one more token of the answer.
class AnswerUnderGuide : public GuidedChoiceTest {
 protected:
  void begin(const Guide& guide, SamplingParams params = {}) {
    params_ = std::move(params);
    choice_.text = std::make_unique<OutputProcessor>(*tokenizer_, params_);
    choice_.guide.emplace(*compiler_.compile(guide, ""), guide.field, std::vector<TokenId>{kEnd});
  }
  RequestOutput append(TokenId token, std::optional<FinishReason> reason = std::nullopt) {
    std::vector<sched::SampledToken> tokens = {{.token = token}};
    RequestOutput output;
    output.finish_reason = reason;
    choice_.append({.tokens = tokens, .finish_reason = reason}, params_.include_stop_str_in_output, output);
    text_ += output.text;
    return output;
  }
  RequestOutput append(std::string_view text) {
    RequestOutput output;
    for (const char byte : text) {
      EXPECT_FALSE(output.finish_reason) << "before " << byte;
      output = append(byte_token(byte));
    }
    return output;
  }

  SamplingParams params_;
  ActiveChoice choice_;
  std::string text_;
};

TEST_F(AnswerUnderGuide, EndsWithStopWhereNothingMayFollow) {
  begin({.text = R"({"type":"object","properties":{},"additionalProperties":false})"});
  EXPECT_FALSE(append(byte_token('{')).finish_reason);
  EXPECT_EQ(append(byte_token('}')).finish_reason, FinishReason::kStop);
  EXPECT_EQ(text_, "{}");
}

TEST_F(AnswerUnderGuide, IsCompleteAlsoWithItsLastToken) {
  begin({.kind = Guide::Kind::kChoice, .choices = {"yes"}});
  EXPECT_EQ(append(kFirstWord, FinishReason::kLength).finish_reason, FinishReason::kStop);
}

TEST_F(AnswerUnderGuide, EndsWithLengthOnItsWay) {
  begin({.kind = Guide::Kind::kRegex, .text = "[a-z]+"});
  EXPECT_EQ(append(kFirstWord, FinishReason::kLength).finish_reason, FinishReason::kLength);
}

TEST_F(AnswerUnderGuide, AStopStringCountsWhereTheTextBeforeItIsOneOfTheGuide) {
  begin({.text = R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false})"},
        {.stop = {"!", "\"}"}});
  EXPECT_FALSE(append(R"({"a":"x!y)").finish_reason) << "inside of a string";
  const RequestOutput output = append("\"}");
  EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  EXPECT_EQ(output.stop_string, "") << "the object would not be whole without its end";
  EXPECT_EQ(text_, R"({"a":"x!y"})");
}

TEST_F(AnswerUnderGuide, AStopStringThatIsShownMayBeTheEnd) {
  begin({.kind = Guide::Kind::kRegex, .text = "a+!*"}, {.stop = {"!"}, .include_stop_str_in_output = true});
  const RequestOutput output = append("aa!");
  EXPECT_EQ(output.stop_string, "!");
  EXPECT_EQ(text_, "aa!");
}

TEST_F(AnswerUnderGuide, AStopStringIsFoundInsideOfAToken) {
  begin({.kind = Guide::Kind::kRegex, .text = "[a-z]+"}, {.stop = {"yb"}});
  const RequestOutput output = append(kFirstWord + 2);  // "maybe"
  EXPECT_EQ(output.stop_string, "yb");
  EXPECT_EQ(text_, "ma");
}

TEST_F(AnswerUnderGuide, ATokenThatTheGuideForbidsIsAnError) {
  begin({.kind = Guide::Kind::kChoice, .choices = {"yes"}});
  const RequestOutput output = append(kFirstWord + 1);
  EXPECT_EQ(output.finish_reason, FinishReason::kError);
  ASSERT_TRUE(output.error);
  EXPECT_EQ(output.error->param, "guide");
}

}  // namespace
}  // namespace kvasir::guided_choice_test
