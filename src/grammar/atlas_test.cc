#include "grammar/atlas.h"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "grammar/vocabulary.h"

namespace kvasir::grammar::atlas_test {
namespace {

std::shared_ptr<const Walk> walk_of(std::size_t num_tokens) {
  auto walk = std::make_shared<Walk>();
  walk->tokens.resize(num_tokens);
  return walk;
}

TEST(Atlas, ForgetsWhatWasNotAskedForLately) {
  Atlas atlas(/*max_bytes=*/1 << 16);
  const Atlas::Key often = {.first = 1};
  const Atlas::Key once = {.first = 2};
  atlas.insert(often, walk_of(100));
  atlas.insert(once, walk_of(100));
  for (std::uint64_t i = 10; i < 1000; ++i) {
    atlas.insert({.first = i}, walk_of(100));
    ASSERT_NE(atlas.find(often), nullptr) << i;
  }
  EXPECT_EQ(atlas.find(once), nullptr);
  EXPECT_NE(atlas.find({.first = 999}), nullptr);
}

TEST(Atlas, TokensOfClassesAreThoseOfTheirLength) {
  const std::vector<std::string_view> tokens = {"", "ab", "abg", "g", "a1", "é", "\xC3", "aé", "gggg"};
  const Vocabulary vocabulary(tokens);
  const CharacterClasses letters = character_class('a') | character_class('g');
  const auto mask = vocabulary.atlas().tokens_of(vocabulary, letters, 3);
  EXPECT_EQ(mask->count, 3);
  EXPECT_TRUE(mask->mask.test(1) && mask->mask.test(2) && mask->mask.test(3));
  EXPECT_EQ(vocabulary.atlas().tokens_of(vocabulary, letters | kBeyondAscii, 2)->count, 4);
  EXPECT_EQ(vocabulary.atlas().tokens_of(vocabulary, letters, 3), mask);
}

TEST(TokenTrie, HasEveryTextOnceAndItsEntriesInOrder) {
  const std::vector<std::string_view> tokens = {"b", "ab", "a", "abc", "b", "é"};
  const TokenTexts texts(tokens);
  const TokenTrie trie(texts, {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {3, 1}});
  EXPECT_EQ(trie.num_nodes(), 1u + 3 + 2 + 2);  // a, ab, abc; b, bc; two bytes
  const TokenTrie::NodeId ab = 2;
  EXPECT_EQ(trie.byte(ab), 'b');
  EXPECT_EQ(trie.depth(ab), 2u);
  ASSERT_EQ(trie.entries_at(ab).size(), 1u);
  EXPECT_EQ(trie.entries_at(ab)[0].token, 1);
  ASSERT_EQ(trie.entries_below(ab).size(), 1u);
  EXPECT_EQ(trie.entries_below(ab)[0].token, 3);
  EXPECT_EQ(trie.classes_from(ab), character_class('b'));
  EXPECT_EQ(trie.characters_from(1), 3u);
  const TokenTrie::NodeId b = trie.skip(1);
  EXPECT_EQ(trie.entries_at(b).size(), 2u);      // two tokens of the same text
  EXPECT_EQ(trie.entries_below(b).size(), 1u);   // the rest of abc
  EXPECT_EQ(trie.classes_from(trie.skip(b)), kBeyondAscii);
  EXPECT_EQ(trie.classes_from(trie.skip(b) + 1), kBrokenCharacter);
}

}  // namespace
}  // namespace kvasir::grammar::atlas_test
