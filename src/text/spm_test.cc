#include "text/spm.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::spm_test {
namespace {

// The file's own spelling of the tokens, separated by '|', without BOS.
std::string pieces(VocabData data, std::string_view text, EncodeOptions options = {.add_special = false}) {
  const auto tokenizer = Tokenizer::create(std::move(data)).value();
  std::string shown;
  for (const TokenId id : tokenizer->encode(text, options)) {
    if (!shown.empty()) shown += '|';
    shown += tokenizer->vocab().text(id);
  }
  return shown;
}

VocabData without_prefix(VocabData data) {
  data.add_space_prefix = false;
  return data;
}

TEST(Spm, MergesTheHighestScoreFirst) {
  const auto vocab = [](float ab, float bc) {
    return without_prefix(sentence_piece_vocab({{"a", 0}, {"b", 0}, {"c", 0}, {"ab", ab}, {"bc", bc}}));
  };
  EXPECT_EQ(pieces(vocab(-1, -2), "abc"), "ab|c");
  EXPECT_EQ(pieces(vocab(-2, -1), "abc"), "a|bc");
  EXPECT_EQ(pieces(vocab(-0.5f, 1.5f), "abc"), "a|bc");
  EXPECT_EQ(pieces(vocab(-0.0f, 0.0f), "abc"), "ab|c");  // equal scores: from the left
}

TEST(Spm, MergesOnlyThroughTokens) {
  EXPECT_EQ(pieces(without_prefix(sentence_piece_vocab({{"a", 0}, {"b", 0}, {"c", 0}, {"abc", 9}})), "abc"),
            "a|b|c");
}

TEST(Spm, PutsASpaceBeforeATextAndAfterSpecialTokens) {
  const VocabData data = sentence_piece_vocab({{"▁", -3}, {"a", -3}, {"▁a", -1}});
  EXPECT_EQ(pieces(data, "a a"), "▁a|▁a");
  EXPECT_EQ(pieces(data, " a"), "▁|▁a");
  EXPECT_EQ(pieces(data, ""), "");
  EXPECT_EQ(pieces(data, "a<s>a", {.parse_special = true, .add_special = false}), "▁a|<s>|▁a");
  EXPECT_EQ(pieces(without_prefix(data), "a a"), "a|▁a");
}

TEST(Spm, FallsBackToBytes) {
  const VocabData data = without_prefix(sentence_piece_vocab({{"a", 0}}));
  EXPECT_EQ(pieces(data, "aé\n"), "a|<0xC3>|<0xA9>|<0x0A>");
  EXPECT_EQ(pieces(data, "\xFF\xE2\x82"), "<0xFF>|<0xE2>|<0x82>");
}

TEST(Spm, TakesTheUnknownTokenForBytesTheVocabularyLacks) {
  VocabData data = {.model = "llama", .add_space_prefix = false};
  add_token(data, "<unk>", TokenType::kUnknown);
  add_token(data, "a");
  EXPECT_EQ(pieces(std::move(data), "az"), "a|<unk>");
}

TEST(Spm, ByteTokensInATextArePlainText) {
  EXPECT_EQ(pieces(without_prefix(
                       sentence_piece_vocab({{"<", 0}, {"0", 0}, {"x", 0}, {"4", 0}, {"1", 0}, {">", 0}})),
                   "<0x41>"),
            "<|0|x|4|1|>");
}

TEST(Spm, MergesAMegabyteWithoutBoundaries) {
  std::vector<std::pair<std::string, float>> runs;
  for (std::string part = "a"; part.size() <= 128; part += part)
    runs.emplace_back(part, static_cast<float>(-1.0 * static_cast<double>(part.size())));
  const auto tokenizer = Tokenizer::create(without_prefix(sentence_piece_vocab(runs))).value();
  const std::vector<TokenId> ids = tokenizer->encode(std::string(1u << 20, 'a'), {.add_special = false});
  EXPECT_EQ(ids, std::vector<TokenId>((1u << 20) / 128, tokenizer->vocab().find(std::string(128, 'a'))));
}

}  // namespace
}  // namespace kvasir::text::spm_test
