#include "text/gguf_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"
#include "text/tokenizer.h"

namespace kvasir::text::gguf_pipeline_test {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> made(VocabData data) { return Tokenizer::create(std::move(data)).value(); }

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, then pieces as GGUF files write them.
VocabData bert_vocab(const std::vector<std::string>& pieces) {
  VocabData data = {.model = "bert", .unknown = 1, .classification = 2, .separator = 3};
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) add_token(data, text, TokenType::kControl);
  for (const std::string& piece : pieces) add_token(data, piece);
  return data;
}

TEST(GgufBert, TakesTheLongestPieceFirstAndFramesTheText) {
  const auto bert = made(bert_vocab({"▁un", "▁una", "aff", "able", "ffable", "▁,", "▁!"}));
  EXPECT_EQ(bert->encode("unaffable, UNAFFABLE!"), (Ids{2, 5, 8, 9, 5, 8, 10, 3}));
  EXPECT_EQ(bert->encode("un able", {.add_special = false}), (Ids{4, 1}));  // "able" begins no word
  EXPECT_EQ(bert->encode(""), (Ids{2, 3}));
  EXPECT_TRUE(bert->adds_bos() || bert->vocab().bos() == kNoToken);
}

TEST(GgufBert, NormalizesAsTheModelsOwnFilesDo) {
  const auto bert = made(bert_vocab({"▁cafe", "▁中", "▁文", "▁a", "b"}));
  EXPECT_EQ(bert->encode("Café cafe\u0301", {.add_special = false}),
            (Ids{4, 4}));  // marks go, composed or not
  EXPECT_EQ(bert->encode("中文", {.add_special = false}), (Ids{5, 6}));
  EXPECT_EQ(bert->encode("A\u200dB\u00ad\tA", {.add_special = false}),
            (Ids{7, 8, 7}));  // format characters go
  VocabData cased = bert_vocab({"▁cafe", "▁Café"});
  cased.lowercase = false;
  EXPECT_EQ(made(std::move(cased))->encode("Café", {.add_special = false}), (Ids{5}));
}

TEST(GgufBert, AWordOfMoreThan100CharactersIsUnknown) {
  const auto bert = made(bert_vocab({"▁a", "a"}));
  EXPECT_EQ(bert->encode(std::string(100, 'a'), {.add_special = false}).size(), 100u);
  EXPECT_EQ(bert->encode(std::string(101, 'a'), {.add_special = false}), (Ids{1}));
}

TEST(GgufBert, DecodesWordsWithSpacesBetweenThem) {
  const auto bert = made(bert_vocab({"▁don", "t", "▁'", "▁t", "▁stop", "▁.", "ping"}));
  EXPECT_EQ(bert->decode(Ids{2, 4, 8, 10, 9, 3}), "don stopping.");
  EXPECT_EQ(bert->decode(Ids{2, 4}, /*render_special=*/true), "[CLS] don");
}

TEST(GgufBert, APairHasTwoTokenTypes) {
  const auto bert = made(bert_vocab({"▁a", "▁b"}));
  const auto pair = bert->encode_pair("a", "b a");
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->ids, (Ids{2, 4, 3, 5, 4, 3}));
  EXPECT_EQ(pair->token_types, (std::vector<std::uint8_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_FALSE(made(byte_level_vocab({{"a", "b"}}))->encode_pair("a", "b").has_value());
}

// <pad> 0, </s> 1, <unk> 2, then pieces with their scores.
VocabData t5_vocab(const std::vector<std::pair<std::string, float>>& pieces) {
  VocabData data = {.model = "t5", .eos = 1, .unknown = 2, .add_space_prefix = true, .merge_spaces = true};
  add_token(data, "<pad>", TokenType::kControl);
  add_token(data, "</s>", TokenType::kControl);
  add_token(data, "<unk>", TokenType::kUnknown);
  for (const auto& [text, score] : pieces) add_token(data, text, TokenType::kNormal, score);
  return data;
}

TEST(GgufT5, TakesTheMostProbableSplit) {
  const auto t5 = made(t5_vocab({{"▁", -2}, {"a", -3}, {"b", -3}, {"ab", -7}, {"▁a", -4}, {"▁ab", -8}}));
  EXPECT_EQ(t5->encode("ab"), (Ids{7, 5, 1}));  // -7 beats -8 of "▁ab" and -8 of "▁", "a", "b"
  EXPECT_EQ(t5->encode("a  a", {.add_special = false}), (Ids{7, 7}));
  EXPECT_EQ(t5->encode("axya", {.add_special = false}), (Ids{7, 2, 4}));  // neighbouring unknown ones fuse
  EXPECT_EQ(t5->decode(Ids{7, 5, 7, 1}), "ab a");
}

TEST(GgufT5, TheEarlierStartStaysAtEqualSums) {
  const auto t5 = made(t5_vocab({{"▁", 0}, {"a", -1}, {"b", -1}, {"ab", -2}}));
  EXPECT_EQ(t5->encode("ab", {.add_special = false}), (Ids{3, 6}));
}

// In float the sum of -0.1 and -0.2 is -0.3, and the longer piece would stay.
TEST(GgufT5, AddsScoresInDouble) {
  const auto t5 = made(t5_vocab({{"▁", 0}, {"a", -0.1f}, {"b", -0.2f}, {"ab", -0.3f}}));
  EXPECT_EQ(t5->encode("ab", {.add_special = false}), (Ids{3, 4, 5}));
}

// A trie of one entry: "\r" becomes " "; built by hand as darts-clone lays it out.
std::string one_entry_charsmap() {
  std::vector<std::uint32_t> units(64, 0);
  const auto offset = [](std::uint32_t to) { return to << 10; };
  units[0] = offset(16);                           // the root's children lie at 16 ^ byte
  units[16 ^ '\r'] = '\r' | 1u << 8 | offset(32);  // a leaf, whose value lies at its offset
  units[(16 ^ '\r') ^ 32] = 1u << 31;              // value 0: the pool's first text
  std::string bytes;
  const auto append = [&](std::uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(word >> shift));
  };
  append(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) append(unit);
  return bytes + std::string(" \0", 2);
}

TEST(GgufT5, ReplacesWholeGraphemesByItsCharacterMap) {
  VocabData data = t5_vocab({{"▁", -2}, {"a", -3}, {"▁a", -4}});
  data.charsmap = one_entry_charsmap();
  const auto t5 = made(data);
  EXPECT_EQ(t5->encode("a\r\na", {.add_special = false}), (Ids{5, 5}));  // the grapheme "\r\n" is one space
  data.charsmap = data.charsmap.substr(0, 20);
  const auto broken = Tokenizer::create(std::move(data));
  ASSERT_FALSE(broken.has_value());
  EXPECT_NE(broken.error().message.find("character map has 20 bytes"), std::string::npos);
}

VocabData gemma4_vocab() {
  VocabData data = {.model = "gemma4", .bos = 2, .eos = 1, .unknown = 3, .add_bos = false};
  for (const char* text : {"<pad>", "<eos>", "<bos>", "<unk>"}) add_token(data, text, TokenType::kControl);
  for (const char* text : {"▁", "a", "b", "▁a", "ab", "\n", "\n\n", "\n\n\n"}) add_token(data, text);
  for (int byte : {0xC3, 0xA9}) add_token(data, byte == 0xC3 ? "<0xC3>" : "<0xA9>", TokenType::kByte);
  data.merges = {"▁ a", "a b", "▁a bb"};  // the last one is of no token
  return data;
}

TEST(GgufGemma4, MergesCharactersAndLooksUpRunsOfLineBreaks) {
  const auto gemma = made(gemma4_vocab());
  EXPECT_EQ(gemma->encode("ab ab"), (Ids{2, 8, 7, 6}));        // BOS whatever the file says
  EXPECT_EQ(gemma->encode("a\n\n\nb"), (Ids{2, 5, 11, 6}));    // no merge leads there
  EXPECT_EQ(gemma->encode("\n\n\n\n"), (Ids{2, 9, 9, 9, 9}));  // no such run
  EXPECT_EQ(gemma->encode("aé", {.add_special = false}), (Ids{5, 12, 13}));
  EXPECT_EQ(gemma->encode("xy", {.add_special = false}), (Ids{3}));  // unknown, fused
  EXPECT_EQ(gemma->decode(Ids{2, 7, 6, 12, 13, 9}), " abé\n");
}

TEST(GgufGemma4, APreTokenizerMayAskForThisModelToo) {
  VocabData data = gemma4_vocab();
  data.model = "gpt2";
  data.pre = "sarvam-moe";
  EXPECT_EQ(made(data)->encode("ab ab"), (Ids{8, 7, 6}));
  data.pre = "granite-embed-multi-311m";
  data.add_bos.reset();
  EXPECT_EQ(made(data)->encode("ab"), (Ids{2, 8}));
  data.merges.clear();
  EXPECT_FALSE(Tokenizer::create(std::move(data)).has_value());
}

TEST(GgufPipelines, TakeAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 2048; ++i) bytes.push_back(static_cast<char>(i * 37 + i / 256));
  for (VocabData data : {bert_vocab({"▁a"}), t5_vocab({{"▁", -1}}), gemma4_vocab()}) {
    EXPECT_FALSE(made(std::move(data))->encode(bytes).empty());
  }
}

}  // namespace
}  // namespace kvasir::text::gguf_pipeline_test
