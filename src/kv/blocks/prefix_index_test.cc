#include "kv/blocks/prefix_index.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::kv::prefix_index_test {
namespace {

using Tokens = std::array<TokenId, kTokensPerBlock>;

Tokens block_of(TokenId token) {
  Tokens tokens;
  tokens.fill(token);
  return tokens;
}

PrefixIndex make_index(std::int32_t hash_bits = 64) { return {SipKey{1, 2}, 1, 16, hash_bits}; }

TEST(PrefixIndex, FindsWhatWasAdded) {
  PrefixIndex index = make_index();
  const PrefixNodeId root = index.open("a", 0);
  PrefixNodeId cursor = index.open("a", 0);
  cursor = index.advance(cursor, block_of(1));
  index.set_block(cursor, 0, BlockId{5});
  const auto found = index.find_child(root, block_of(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(index.block(*found, 0), BlockId{5});
  EXPECT_FALSE(index.find_child(root, block_of(2)).has_value());
}

TEST(PrefixIndex, KeepsNamespacesAndPoliciesApart) {
  PrefixIndex index = make_index();
  const PrefixNodeId mine = index.advance(index.open("a", 0), block_of(1));
  index.set_block(mine, 0, BlockId{5});
  EXPECT_FALSE(index.find_child(index.open("b", 0), block_of(1)).has_value());
  EXPECT_FALSE(index.find_child(index.open("a", 1), block_of(1)).has_value());
}

TEST(PrefixIndex, TellsEqualBlocksBehindDifferentPrefixesApart) {
  PrefixIndex index = make_index(1);  // every second hash collides
  const PrefixNodeId a = index.advance(index.open("", 0), block_of(1));
  const PrefixNodeId b = index.advance(index.open("", 0), block_of(2));
  const PrefixNodeId behind_a = index.advance(a, block_of(3));
  EXPECT_EQ(index.find_child(a, block_of(3)), behind_a);
  EXPECT_FALSE(index.find_child(b, block_of(3)).has_value());
}

TEST(PrefixIndex, SurvivesCollisionsOfEveryHash) {
  PrefixIndex index = make_index(1);
  const PrefixNodeId root = index.open("", 0);
  for (TokenId token = 0; token < 100; ++token) {
    const PrefixNodeId node = index.advance(index.open("", 0), block_of(token));
    index.set_block(node, 0, BlockId{token});
    index.release(node);
  }
  for (TokenId token = 0; token < 100; token += 2)
    index.remove_block(*index.find_child(root, block_of(token)), 0);
  for (TokenId token = 0; token < 100; ++token) {
    const auto found = index.find_child(root, block_of(token));
    ASSERT_EQ(found.has_value(), token % 2 == 1) << token;
    if (!found) continue;
    EXPECT_EQ(index.block(*found, 0), BlockId{token});
  }
}

TEST(PrefixIndex, ForgetsANodeWhenNothingNeedsIt) {
  PrefixIndex index = make_index();
  PrefixNodeId cursor = index.advance(index.open("", 0), block_of(1));
  index.set_block(cursor, 0, BlockId{0});
  cursor = index.advance(cursor, block_of(2));
  index.set_block(cursor, 0, BlockId{1});
  EXPECT_EQ(index.num_nodes(), 3);
  index.release(cursor);
  EXPECT_EQ(index.num_nodes(), 3);  // both blocks are still cached
  const PrefixNodeId first = index.parent(cursor);
  index.remove_block(first, 0);
  EXPECT_EQ(index.num_nodes(), 3);  // the first still leads to the second
  index.remove_block(cursor, 0);
  EXPECT_EQ(index.num_nodes(), 0);  // the root is gone too
}

TEST(PrefixIndex, CursorKeepsItsPathAlive) {
  PrefixIndex index = make_index();
  PrefixNodeId cursor = index.advance(index.open("", 0), block_of(1));
  EXPECT_EQ(index.num_nodes(), 2);
  const PrefixNodeId again = index.advance(index.open("", 0), block_of(1));
  EXPECT_EQ(again, cursor);
  index.release(again);
  EXPECT_EQ(index.num_nodes(), 2);
  index.release(cursor);
  EXPECT_EQ(index.num_nodes(), 0);
}

}  // namespace
}  // namespace kvasir::kv::prefix_index_test
