#include "text/fim_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::fim_tokens_test {
namespace {

FimTokens of(const std::vector<std::string>& texts) {
  VocabData data = byte_level_vocab({{"Q", "Q"}});  // a vocabulary must have a merge
  for (const std::string& text : texts) add_token(data, text, TokenType::kControl);
  return fim_tokens_of(Vocab::create(std::move(data)).value());
}

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

}  // namespace
}  // namespace kvasir::text::fim_tokens_test
