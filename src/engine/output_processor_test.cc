#include "engine/output_processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "engine/stop_matcher.h"

namespace kvasir::output_processor_test {
namespace {

constexpr TokenId kEnd = 2;        // a control token
constexpr TokenId kFirstByte = 3;  // one token for each byte
constexpr TokenId kFirstWord = 259;

// A vocabulary of bytes and a few words.
std::unique_ptr<text::Tokenizer> make_tokenizer(const std::vector<std::string>& words) {
  text::VocabData data;
  data.model = "llama";
  const auto add = [&data](const std::string& token, text::TokenType type) {
    data.tokens.push_back(token);
    data.scores.push_back(0.0f);
    data.token_types.push_back(static_cast<std::int32_t>(type));
  };
  add("<unk>", text::TokenType::kUnknown);
  add("<s>", text::TokenType::kControl);
  add("</s>", text::TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string token = "<0x..>";
    token[3] = kHex[static_cast<std::size_t>(byte) / 16];
    token[4] = kHex[static_cast<std::size_t>(byte) % 16];
    add(token, text::TokenType::kByte);
  }
  for (const std::string& word : words) add(word, text::TokenType::kNormal);
  data.unknown = 0;
  data.bos = 1;
  data.eos = kEnd;
  return text::Tokenizer::create(std::move(data)).value();
}

struct Answer {
  std::string text;
  std::optional<std::string> stop_string;
  std::size_t num_tokens = 0;  // taken until the stop
};

// Feeds tokens until a stop string ends the answer; every piece must be whole characters.
Answer process(const text::Tokenizer& tokenizer, const SamplingParams& params,
               const std::vector<TokenId>& tokens) {
  OutputProcessor processor(tokenizer, params);
  Answer answer;
  for (const TokenId token : tokens) {
    ++answer.num_tokens;
    OutputProcessor::Piece piece = processor.push(token, static_cast<std::int32_t>(answer.num_tokens));
    EXPECT_TRUE(is_valid_utf8(piece.text));
    answer.text += piece.text;
    if (piece.stop_string) {
      answer.stop_string = piece.stop_string;
      return answer;
    }
  }
  const std::string rest = processor.flush();
  EXPECT_TRUE(is_valid_utf8(rest));
  answer.text += rest;
  return answer;
}

std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(kFirstByte + static_cast<unsigned char>(byte));
  return tokens;
}

SamplingParams with_stops(std::vector<std::string> stops) {
  SamplingParams params;
  params.stop = std::move(stops);
  return params;
}

TEST(OutputProcessor, FindsAStopStringAcrossTokensAndCharacters) {
  const auto tokenizer = make_tokenizer({});
  const SamplingParams params = with_stops({"b→c"});
  const Answer answer = process(*tokenizer, params, byte_tokens("aab→b→cdd"));
  EXPECT_EQ(answer.text, "aab→");
  EXPECT_EQ(answer.stop_string, "b→c");
  EXPECT_EQ(answer.num_tokens, std::string_view("aab→b→c").size());
}

TEST(OutputProcessor, ShowsTheStopStringButNothingAfterItWhenAskedTo) {
  const auto tokenizer = make_tokenizer({"x.\n\ny"});
  SamplingParams params = with_stops({"\n\n"});
  EXPECT_EQ(process(*tokenizer, params, {kFirstWord}).text, "x.");
  params.include_stop_str_in_output = true;
  EXPECT_EQ(process(*tokenizer, params, {kFirstWord}).text, "x.\n\n");
}

TEST(OutputProcessor, ReleasesHeldTextWhenTheStopDoesNotComeOrTheAnswerEnds) {
  const auto tokenizer = make_tokenizer({});
  const SamplingParams params = with_stops({"stop!"});
  OutputProcessor processor(*tokenizer, params);
  std::string shown;
  for (const TokenId token : byte_tokens("a stop")) shown += processor.push(token, 1).text;
  EXPECT_EQ(shown, "a ");
  EXPECT_EQ(processor.push(byte_tokens("s")[0], 2).text, "stop");  // the new s may start another
  EXPECT_EQ(processor.flush(), "s");
}

TEST(OutputProcessor, IgnoresStopStringsThatEndWithinMinTokens) {
  const auto tokenizer = make_tokenizer({});
  SamplingParams params = with_stops({"ab"});
  params.min_tokens = 4;
  EXPECT_EQ(process(*tokenizer, params, byte_tokens("ababab")).text, "abab");
  params.min_tokens = 3;  // the second one starts within, but ends beyond
  EXPECT_EQ(process(*tokenizer, params, byte_tokens("ababab")).text, "ab");
}

TEST(OutputProcessor, HidesControlTokensUnlessAskedForThem) {
  const auto tokenizer = make_tokenizer({"hi"});
  SamplingParams params;
  EXPECT_EQ(process(*tokenizer, params, {kFirstWord, kEnd, kFirstWord}).text, "hihi");
  params.skip_special_tokens = false;
  EXPECT_EQ(process(*tokenizer, params, {kFirstWord, kEnd, kFirstWord}).text, "hi</s>hi");
  params.skip_special_tokens = true;
  params.shown_special_tokens = {kEnd};
  EXPECT_EQ(process(*tokenizer, params, {1, kFirstWord, kEnd, kFirstWord}).text, "hi</s>hi");
  params.stop = {"</s>"};
  EXPECT_EQ(process(*tokenizer, params, {kFirstWord, kEnd, kFirstWord}).text, "hi");
}

// The answer by definition, from the whole text at once. Stops count when they end in the text of a token
// beyond min_tokens; of those that end in the same token's text, the first to start wins, then the longest.
Answer expected_answer(const text::Tokenizer& tokenizer, const SamplingParams& params,
                       const std::vector<TokenId>& tokens) {
  text::StreamingDetokenizer detokenizer(tokenizer);
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t num_old_bytes = text.size();
    text += detokenizer.push(tokens[i]);
    if (i + 1 <= static_cast<std::size_t>(params.min_tokens)) continue;
    const std::string* best = nullptr;
    std::size_t best_begin = 0;
    for (const std::string& stop : params.stop) {
      for (std::size_t begin = 0; begin + stop.size() <= text.size(); ++begin) {
        if (begin + stop.size() <= num_old_bytes || text.compare(begin, stop.size(), stop) != 0) continue;
        const bool wins =
            best == nullptr || begin < best_begin || (begin == best_begin && stop.size() > best->size());
        if (wins) {
          best = &stop;
          best_begin = begin;
        }
      }
    }
    if (best == nullptr) continue;
    text.resize(best_begin + (params.include_stop_str_in_output ? best->size() : 0));
    return {text, *best, i + 1};
  }
  return {text + detokenizer.flush(), std::nullopt, tokens.size()};
}

TEST(OutputProcessor, EqualsTheWholeTextCutAtTheStopForRandomTokens) {
  // A tiny alphabet with characters of one, two and three bytes makes partial and overlapping matches common.
  const std::vector<std::string> pieces = {"a", "b", "ab", "é", "→", "aé", "→a", "abab", "é→é"};
  const auto tokenizer = make_tokenizer(pieces);
  std::mt19937 random(11);
  int num_stopped = 0;
  for (int round = 0; round < 5000; ++round) {
    SamplingParams params;
    for (std::size_t i = random() % 4; i > 0; --i) {
      std::string stop;
      for (std::size_t j = 1 + random() % 4; j > 0; --j) stop += pieces[random() % pieces.size()];
      params.stop.push_back(std::move(stop));
    }
    params.include_stop_str_in_output = random() % 2 == 0;
    params.min_tokens = static_cast<std::int32_t>(random() % 3 == 0 ? random() % 12 : 0);
    std::vector<TokenId> tokens;
    for (std::size_t i = random() % 30; i > 0; --i) {
      const bool whole = random() % 3 != 0;
      // Otherwise a byte of é or →, so that characters arrive in halves and broken.
      constexpr unsigned char kBytes[] = {0xC3, 0xA9, 0xE2, 0x86, 0x92, 'a'};
      tokens.push_back(whole ? kFirstWord + static_cast<TokenId>(random() % pieces.size())
                             : kFirstByte + kBytes[random() % sizeof kBytes]);
    }
    const Answer expected = expected_answer(*tokenizer, params, tokens);
    const Answer answer = process(*tokenizer, params, tokens);
    ASSERT_EQ(answer.text, expected.text) << "round " << round;
    ASSERT_EQ(answer.stop_string, expected.stop_string) << "round " << round;
    ASSERT_EQ(answer.num_tokens, expected.num_tokens) << "round " << round;
    num_stopped += answer.stop_string.has_value();
  }
  EXPECT_GT(num_stopped, 500);
}

TEST(StopMatcher, TakesTheStopThatStartsFirstThenTheLongest) {
  const std::vector<std::string> stops = {"cd", "bcd", "bcde"};
  EXPECT_EQ(StopMatcher(stops, false).push("abcdef").stop_string, "bcde");
  EXPECT_EQ(StopMatcher(stops, false).push("abcdXX").stop_string, "bcd");
}

TEST(StopMatcher, HoldsNothingBackWithoutStops) {
  StopMatcher matcher({}, false);
  EXPECT_EQ(matcher.push("abc").text, "abc");
  EXPECT_EQ(matcher.flush(), "");
}

}  // namespace
}  // namespace kvasir::output_processor_test
