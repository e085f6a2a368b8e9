#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::detokenizer_test {
namespace {

std::unique_ptr<Tokenizer> byte_tokenizer() {
  VocabData data = byte_level_vocab({{"h", "i"}});
  add_token(data, "<|im_end|>", TokenType::kControl);  // 257
  return Tokenizer::create(std::move(data)).value();
}

// The pieces in turn, separated by '|', the last one from flush.
std::string stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                   DetokenizerOptions options = {}) {
  StreamingDetokenizer detokenizer(tokenizer, options);
  std::string shown;
  for (const TokenId id : ids) shown += detokenizer.push(id) + "|";
  return shown + detokenizer.flush();
}

std::vector<TokenId> bytes(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

TEST(StreamingDetokenizer, HoldsBackHalfCharacters) {
  EXPECT_EQ(stream(*byte_tokenizer(), bytes("aé😀b")), "a||é||||😀|b|");
}

TEST(StreamingDetokenizer, ReplacesBytesThatCannotBecomeACharacter) {
  const auto tokenizer = byte_tokenizer();
  EXPECT_EQ(stream(*tokenizer, bytes("\x80z")), "\uFFFD|z|");
  EXPECT_EQ(stream(*tokenizer, bytes("\xF0\x9Fz")), "||\uFFFDz|");
  EXPECT_EQ(stream(*tokenizer, bytes("\xE2\xE2\x82\xAC")), "|\uFFFD||€|");
}

TEST(StreamingDetokenizer, FlushReplacesAnUnfinishedCharacter) {
  EXPECT_EQ(stream(*byte_tokenizer(), bytes("a\xF0\x9F\x98")), "a||||\uFFFD");
  EXPECT_EQ(stream(*byte_tokenizer(), {}), "");
}

TEST(StreamingDetokenizer, ShowsControlTokensOnlyOnRequest) {
  const auto tokenizer = byte_tokenizer();
  EXPECT_EQ(stream(*tokenizer, {256, 257, 256}), "hi||hi|");
  EXPECT_EQ(stream(*tokenizer, {256, 257}, {.render_special = true}), "hi|<|im_end|>|");
}

TEST(StreamingDetokenizer, KeepsTheSpaceOfAContinuationAndDropsTheOneBeforeAText) {
  const auto tokenizer = Tokenizer::create(sentence_piece_vocab({{"▁a", -1}})).value();
  const TokenId space_a = tokenizer->vocab().find("▁a");
  EXPECT_EQ(stream(*tokenizer, {space_a, space_a}), " a| a|");
  EXPECT_EQ(stream(*tokenizer, {space_a, space_a}, {.at_text_start = true}), "a| a|");
}

TEST(StreamingDetokenizer, JoinsByteTokensIntoCharacters) {
  const auto tokenizer = Tokenizer::create(sentence_piece_vocab({})).value();
  EXPECT_EQ(stream(*tokenizer, {3 + 0xE2, 3 + 0x82, 3 + 0xAC}), "||€|");
}

TEST(StreamingDetokenizer, PiecesAddUpToTheDecodedText) {
  const auto tokenizer = byte_tokenizer();
  const std::string text = "नमस्ते 👩🏽‍💻 hi\n";
  StreamingDetokenizer detokenizer(*tokenizer);
  std::string joined;
  for (const TokenId id : tokenizer->encode(text)) joined += detokenizer.push(id);
  EXPECT_EQ(joined + detokenizer.flush(), text);
}

}  // namespace
}  // namespace kvasir::text::detokenizer_test
