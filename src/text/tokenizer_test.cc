#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::tokenizer_test {
namespace {

using Ids = std::vector<TokenId>;

// Byte-level with <bos> 257, <eos> 258, the user-defined <b> 259 and a control <tool> 260.
VocabData chat_vocab() {
  VocabData data = byte_level_vocab({{"h", "i"}});
  add_token(data, "<bos>", TokenType::kControl);
  add_token(data, "<eos>", TokenType::kControl);
  add_token(data, "<b>", TokenType::kUserDefined);
  add_token(data, "<tool>", TokenType::kControl);
  data.bos = 257;
  data.eos = 258;
  return data;
}

std::unique_ptr<Tokenizer> chat_tokenizer(bool add_bos = false, bool add_eos = false) {
  VocabData data = chat_vocab();
  data.add_bos = add_bos;
  data.add_eos = add_eos;
  return Tokenizer::create(std::move(data)).value();
}

std::string stress_text() {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/cases/tokenizer/stress.txt", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Tokenizer, TakesControlTokensInATextForTextByDefault) {
  const auto tokenizer = chat_tokenizer();
  EXPECT_EQ(tokenizer->encode("<tool>"), (Ids{'<', 't', 'o', 'o', 'l', '>'}));
  EXPECT_EQ(tokenizer->encode("<tool>hi", {.parse_special = true}), (Ids{260, 256}));
}

TEST(Tokenizer, MatchesUserDefinedTokensAlways) {
  const auto tokenizer = chat_tokenizer();
  EXPECT_EQ(tokenizer->encode("<b>hi<b>"), (Ids{259, 256, 259}));
}

TEST(Tokenizer, AddsBosAndEosOnlyOnce) {
  const auto tokenizer = chat_tokenizer(/*add_bos=*/true, /*add_eos=*/true);
  EXPECT_EQ(tokenizer->encode("hi"), (Ids{257, 256, 258}));
  EXPECT_EQ(tokenizer->encode(""), (Ids{257, 258}));
  EXPECT_EQ(tokenizer->encode("hi", {.add_special = false}), (Ids{256}));
  EXPECT_EQ(tokenizer->encode("<bos>hi<eos>", {.parse_special = true}), (Ids{257, 256, 258}));
  EXPECT_EQ(tokenizer->encode("<bos><bos>hi", {.parse_special = true}), (Ids{257, 257, 256, 258}));
}

TEST(Tokenizer, AddsNoBosThatTheModelLacks) {
  VocabData data = chat_vocab();
  data.bos = kNoToken;
  data.add_bos = true;
  EXPECT_FALSE(Tokenizer::create(std::move(data)).value()->adds_bos());
}

TEST(Tokenizer, BosGoesInFrontWhereTheKindOfModelWantsIt) {
  VocabData data = chat_vocab();
  EXPECT_FALSE(Tokenizer::create(data).value()->adds_bos());
  data.pre = "llama-bpe";
  EXPECT_TRUE(Tokenizer::create(data).value()->adds_bos());
  EXPECT_TRUE(Tokenizer::create(sentence_piece_vocab({})).value()->adds_bos());
}

TEST(Tokenizer, HidesControlTokensUnlessAsked) {
  const auto tokenizer = chat_tokenizer();
  const Ids ids = {257, 256, 260, 259, 256};
  EXPECT_EQ(tokenizer->decode(ids), "hi<b>hi");
  EXPECT_EQ(tokenizer->decode(ids, /*render_special=*/true), "<bos>hi<tool><b>hi");
}

TEST(Tokenizer, DecodesIdsOutsideTheVocabularyToNothing) {
  const auto tokenizer = chat_tokenizer();
  EXPECT_EQ(tokenizer->decode(Ids{256, 100000, -1, 256}), "hihi");
}

TEST(Tokenizer, DecodesAddedTokensLiterally) {
  VocabData data = byte_level_vocab({{"h", "i"}});
  add_token(data, "two words");  // a space is not in the byte alphabet
  const auto tokenizer = Tokenizer::create(std::move(data)).value();
  EXPECT_EQ(tokenizer->decode_token(257), "two words");
}

TEST(Tokenizer, SentencePieceSpacesComeBackAsTheyWere) {
  const auto tokenizer = Tokenizer::create(sentence_piece_vocab({{"▁", -9}, {"a", -9}, {"▁a", -1}})).value();
  for (const std::string_view text : {"", "a", " a", "  a a ", " ", "\n a", "é"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  const Ids with_special = tokenizer->encode("a<s> a", {.parse_special = true});
  EXPECT_EQ(tokenizer->decode(with_special, /*render_special=*/true), "<s>a<s> a");
}

// As Gemma's tokenizer.json: runs of the mark are tokens, and a space beside a mark joins it before a word does.
TEST(Tokenizer, MarksOfSpacesAreTheTokensOfSpaces) {
  VocabData data = sentence_piece_vocab({{"▁", -9}, {"a", -9}, {"▁a", -1}});
  add_token(data, "  ", TokenType::kUserDefined);
  add_token(data, "   ", TokenType::kUserDefined);
  add_token(data, "<c>", TokenType::kControl);
  data.add_space_prefix = false;
  const auto tokenizer = Tokenizer::create(std::move(data)).value();
  const std::size_t plain_at[] = {3};
  const Ids hidden = tokenizer->encode("▁<c><c>", {.parse_special = true, .plain_at = plain_at});
  EXPECT_EQ(hidden.back(), tokenizer->vocab().find("<c>"));
  EXPECT_EQ(std::ranges::count(hidden, hidden.back()), 1) << "the first is text";
  const TokenId a = tokenizer->vocab().find("a"), two = tokenizer->vocab().find("  ");
  EXPECT_EQ(tokenizer->encode("  a", {.add_special = false}), (Ids{two, a}));
  EXPECT_EQ(tokenizer->encode("▁▁a", {.add_special = false}), (Ids{two, a}));
  EXPECT_EQ(tokenizer->encode(" ▁a", {.add_special = false}), (Ids{two, a}));
  const TokenId three = tokenizer->vocab().find("   ");
  EXPECT_EQ(tokenizer->encode("▁▁▁", {.add_special = false}), (Ids{three}));
  EXPECT_EQ(tokenizer->encode("  ▁a", {.add_special = false}), (Ids{three, a}));
  EXPECT_EQ(tokenizer->encode("▁ ▁▁a", {.add_special = false}), (Ids{two, two, a}));
}

TEST(Tokenizer, DecodeUndoesEncodeOnTheStressText) {
  const std::string text = stress_text();
  ASSERT_GT(text.size(), 30000u);
  for (const std::string pre : {"gpt-2", "llama-bpe", "smollm", "qwen2", "default"}) {
    VocabData data = byte_level_vocab({{" ", "t"}, {"h", "e"}, {" t", "he"}, {"\xE4", "\xBD"}, {" ", " "}},
                                      pre);
    const auto tokenizer = Tokenizer::create(std::move(data)).value();
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << pre;
  }
}

TEST(Tokenizer, TakesAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes.push_back(static_cast<char>(i * 37 + i / 256));
  const auto tokenizer = chat_tokenizer();
  EXPECT_FALSE(tokenizer->encode(bytes).empty());
  // U+2581 gives the prefix and spaces back; a broken character before a space would swallow its bytes.
  std::erase(bytes, ' ');
  const auto sentence_piece = Tokenizer::create(sentence_piece_vocab({{"▁", 0}})).value();
  EXPECT_EQ(sentence_piece->decode(sentence_piece->encode(bytes)), bytes);
}

TEST(Tokenizer, ReportsWhatItCannotBuild) {
  VocabData data = chat_vocab();
  data.pre = "nobody";
  const auto tokenizer = Tokenizer::create(std::move(data));
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_NE(tokenizer.error().message.find("tokenizer.ggml.pre 'nobody'"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::text::tokenizer_test
