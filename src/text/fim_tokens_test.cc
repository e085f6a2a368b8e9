#include "text/fim_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::fim_tokens_test {
namespace {

VocabData vocab_with(const std::vector<std::string>& texts) {
  VocabData data = byte_level_vocab({{"Q", "Q"}});  // a vocabulary must have a merge
  for (const std::string& text : texts) add_token(data, text, TokenType::kControl);
  return data;
}

FimTokens named_by(VocabData data) { return Vocab::create(std::move(data)).value().fim_tokens(); }

FimTokens of(const std::vector<std::string>& texts) { return named_by(vocab_with(texts)); }

constexpr TokenId kFirst = 257;  // behind the bytes and "QQ"

TEST(FimTokens, AreKnownByTheirTexts) {
  const FimTokens tokens = of({"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|file_sep|>"});
  EXPECT_TRUE(tokens.are_there());
  EXPECT_EQ(tokens.prefix, kFirst);
  EXPECT_EQ(tokens.suffix, kFirst + 1);
  EXPECT_EQ(tokens.middle, kFirst + 2);
  EXPECT_EQ(tokens.repository, kNoToken);
  EXPECT_EQ(tokens.separator, kFirst + 3);
}

TEST(FimTokens, AreThereWhenAllThreePartsHaveOne) {
  EXPECT_FALSE(of({}).are_there());
  EXPECT_FALSE(of({"<|fim_prefix|>", "<|fim_suffix|>"}).are_there());
  EXPECT_TRUE(of({"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"}).are_there());
}

TEST(FimTokens, AreThoseThatTheFileNamesWhateverTheirTexts) {
  VocabData data = vocab_with({"<before>", "<behind>", "<here>", "<fim_prefix>"});
  data.fim_prefix = kFirst;
  data.fim_suffix = kFirst + 1;
  data.fim_middle = kFirst + 2;
  const FimTokens tokens = named_by(std::move(data));
  EXPECT_TRUE(tokens.are_there());
  EXPECT_EQ(tokens.prefix, kFirst);
  EXPECT_EQ(tokens.suffix, kFirst + 1);
  EXPECT_EQ(tokens.middle, kFirst + 2);
}

TEST(FimTokens, OfAFileAreInsideTheVocabulary) {
  VocabData data = vocab_with({});
  data.fim_middle = 100'000;
  const auto vocab = Vocab::create(std::move(data));
  ASSERT_FALSE(vocab.has_value());
  EXPECT_NE(vocab.error().message.find("fim_mid_token_id is 100000"), std::string::npos) << vocab.error().message;
}

}  // namespace
}  // namespace kvasir::text::fim_tokens_test
