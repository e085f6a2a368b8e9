#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::bpe_test {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

// The texts of the ids, separated by '|'.
std::string pieces(VocabData data, std::string_view text) {
  const auto tokenizer = Tokenizer::create(std::move(data)).value();
  std::string shown;
  for (const TokenId id : tokenizer->encode(text)) {
    if (!shown.empty()) shown += '|';
    shown += tokenizer->decode_token(id);
  }
  return shown;
}

// The definition: merge the leftmost pair of lowest rank until none is left. Quadratic.
std::string pieces_by_definition(const Merges& merges, std::string_view word) {
  std::vector<std::string> parts;
  for (const char byte : word) parts.emplace_back(1, byte);
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rank = static_cast<std::size_t>(
          std::ranges::find(merges, std::pair(parts[i], parts[i + 1])) - merges.begin());
      if (rank < best_rank) {
        best_rank = rank;
        best = i;
      }
    }
    if (best_rank == merges.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::string shown;
  for (const std::string& part : parts) {
    if (!shown.empty()) shown += '|';
    shown += part;
  }
  return shown;
}

TEST(Bpe, MergesInTheOrderOfTheList) {
  EXPECT_EQ(pieces(byte_level_vocab({{"b", "c"}, {"a", "b"}}), "abc"), "a|bc");
  EXPECT_EQ(pieces(byte_level_vocab({{"a", "b"}, {"b", "c"}}), "abc"), "ab|c");
}

TEST(Bpe, MergesEqualPairsFromTheLeft) {
  EXPECT_EQ(pieces(byte_level_vocab({{"a", "a"}}), "aaaaa"), "aa|aa|a");
}

TEST(Bpe, DoesNotMergeAcrossWords) {
  EXPECT_EQ(pieces(byte_level_vocab({{"a", " "}, {" ", "b"}}), "a b"), "a| b");
}

TEST(Bpe, WorksOnBytesOfAnyCharacter) {
  EXPECT_EQ(pieces(byte_level_vocab({{"\xC3", "\xA9"}}), "é"), "é");
  EXPECT_EQ(pieces(byte_level_vocab({{"x", "y"}}), "é"), "\xC3|\xA9");
}

TEST(Bpe, TheFirstOfRepeatedMergesCounts) {
  VocabData data = byte_level_vocab({{"a", "b"}, {"b", "c"}});
  data.merges.push_back("a b");
  EXPECT_EQ(pieces(std::move(data), "abc"), "ab|c");
}

TEST(Bpe, SpellsOutWhatHasNoToken) {
  VocabData data = byte_level_vocab({{"a", "b"}});
  data.merges.push_back("ab c");  // "abc" is not in the vocabulary
  EXPECT_EQ(pieces(data, "abcd"), "a|b|c|d");
  data.tokens['b'] = "<no b>";
  EXPECT_EQ(pieces(std::move(data), "abcb"), "a|c");
}

TEST(Bpe, KeepsKnownWordsOnlyWhereTheFilesRelyOnIt) {
  const auto with_word = [](std::string pre) {
    VocabData data = byte_level_vocab({{"x", "y"}}, std::move(pre));
    add_token(data, "hello");  // no merges lead there
    return data;
  };
  EXPECT_EQ(pieces(with_word("llama-bpe"), "hello"), "hello");
  EXPECT_EQ(pieces(with_word("qwen2"), "hello"), "h|e|l|l|o");
}

TEST(Bpe, TakesInvalidBytesForReplacementCharacters) {
  const VocabData data = byte_level_vocab({{"\xEF", "\xBF"}, {"\xEF\xBF", "\xBD"}});
  EXPECT_EQ(pieces(data, "a\xFF\xE2\x82z"), "a|\uFFFD|\uFFFD|\uFFFD|z");
}

TEST(Bpe, RefusesMergesItCannotRead) {
  VocabData data = byte_level_vocab({{"a", "b"}});
  data.merges.push_back("nospace");
  const auto broken = Tokenizer::create(data);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().message,
            "tokenizer.ggml.merges[1] is 'nospace', which is not two parts and a space");
  data.merges.clear();
  EXPECT_FALSE(Tokenizer::create(data).has_value());
}

TEST(Bpe, AgreesWithItsDefinitionOnRandomMerges) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> known = {"a", "b", "c"};
    Merges merges;
    for (int i = 0; i < 12; ++i) {
      std::pair<std::string, std::string> merge = {known[random() % known.size()],
                                                   known[random() % known.size()]};
      if (std::ranges::count(known, merge.first + merge.second) > 0) continue;
      known.push_back(merge.first + merge.second);
      merges.push_back(std::move(merge));
    }
    std::string word(1 + random() % 60, ' ');
    for (char& c : word) c = static_cast<char>('a' + random() % 3);
    ASSERT_EQ(pieces(byte_level_vocab(merges), word), pieces_by_definition(merges, word))
        << "round " << round;
  }
}

TEST(Bpe, MergesAMegabyteWord) {
  Merges merges;
  for (std::string part = "a"; part.size() < 128; part += part) merges.emplace_back(part, part);
  const auto tokenizer = Tokenizer::create(byte_level_vocab(merges)).value();
  const std::vector<TokenId> ids = tokenizer->encode(std::string(1u << 20, 'a'));
  EXPECT_EQ(ids, std::vector<TokenId>((1u << 20) / 128, 256 + 6));
}

}  // namespace
}  // namespace kvasir::text::bpe_test
