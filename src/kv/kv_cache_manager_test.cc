#include "kv/kv_cache_manager.h"

#include <gtest/gtest.h>

#include <vector>

#include "kv/policy/registry.h"
#include "kv/testing/manager_under_test.h"

namespace kvasir::kv::kv_cache_manager_test {
namespace {

// Blocks of a group that sequences hold.
std::int32_t num_held(const KvCacheManager& manager, std::int32_t group) {
  return manager.pool(group).num_blocks() - manager.pool(group).num_free();
}

// Holds the KV of all `tokens`, as if a model had just computed it.
SequenceKv computed(KvCacheManager& manager, const std::vector<TokenId>& tokens, std::string_view name = "") {
  SequenceKv kv = manager.open(name, true, 0);
  const auto length = static_cast<std::int32_t>(tokens.size());
  EXPECT_TRUE(manager.allocate(kv, length));
  manager.commit(kv, tokens, length);
  return kv;
}

TEST(KvCacheManager, RefusesAConfigurationWithoutBlocks) {
  EXPECT_FALSE(KvCacheConfig({}).validate().has_value());
  const auto status = KvCacheConfig({.groups = {{.num_blocks = 0}}}).validate();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "KV cache: layer group 0 needs at least 1 block, got 0");
  EXPECT_FALSE(KvCacheConfig({.groups = {{.num_blocks = 1, .window_tokens = -1}}}).validate().has_value());
  const KvCacheConfig widths{
      .groups = {{.num_blocks = 1, .head_dim = 64}, {.num_blocks = 1, .head_dim = 128}}};
  EXPECT_EQ(widths.validate().error().message,
            "KV cache: groups without a window must have heads of one width, 64 and 128 differ");
  const KvCacheConfig odd{.groups = {{.num_blocks = 1, .head_dim = 80}}, .new_cells = KvFormat::kQ12};
  EXPECT_EQ(odd.validate().error().message,
            "KV cache: the heads of layer group 0 are 80 wide, which q12 does not support");
}

TEST(KvCacheManager, AllocatesInAllGroupsOrInNone) {
  KvCacheManager manager = make_manager({{.num_blocks = 4}, {.num_blocks = 1, .window_tokens = 8}});
  SequenceKv kv = manager.open("", true, 64);
  EXPECT_FALSE(manager.allocate(kv, 17));
  EXPECT_EQ(num_held(manager, 0), 0);
  EXPECT_TRUE(manager.allocate(kv, 16));
  EXPECT_EQ(num_held(manager, 0), 1);
  EXPECT_EQ(manager.pool(1).num_free(), 0);
}

TEST(KvCacheManager, FillsEmptyBlocksWithoutAnEvictionAndGivesThemBack) {
  KvCacheManager manager = make_manager({{.num_blocks = 4}, {.num_blocks = 6}});
  SequenceKv cached = computed(manager, iota_tokens(32));
  manager.free(cached);
  SequenceKv kv = manager.open("", true, 64);
  ASSERT_TRUE(manager.allocate(kv, 10));
  EXPECT_EQ(manager.allocate_empty(kv, 14), 14);
  EXPECT_EQ(manager.allocate_empty(kv, 60), 48);  // there is memory for two more of each group
  EXPECT_EQ(manager.num_evictions(), 0);
  manager.trim(kv, 16);
  EXPECT_EQ(kv.table(0).size(), 1);
  EXPECT_EQ(kv.table(1).size(), 1);
  EXPECT_EQ(manager.allocate_empty(kv, 48), 48);
  manager.free(kv);
}

TEST(KvCacheManager, FindsAPrefixAfterItsOwnerIsGone) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}});
  SequenceKv first = computed(manager, iota_tokens(40));
  const std::vector<BlockId> blocks(first.table(0).blocks().begin(), first.table(0).blocks().end());
  manager.free(first);
  SequenceKv second = manager.open("", true, 64);
  EXPECT_EQ(manager.match_prefix(second, iota_tokens(40)), 32);
  EXPECT_EQ(second.table(0)[0], blocks[0]);
  EXPECT_EQ(second.table(0)[1], blocks[1]);
  manager.free(second);
}

TEST(KvCacheManager, LeavesOneTokenToCompute) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}});
  SequenceKv first = computed(manager, iota_tokens(32));
  SequenceKv second = manager.open("", true, 64);
  EXPECT_EQ(manager.match_prefix(second, iota_tokens(32)), 16);
}

TEST(KvCacheManager, HitsNothingInAnotherNamespace) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}});
  SequenceKv first = computed(manager, iota_tokens(40), "tenant-1");
  SequenceKv second = manager.open("tenant-2", true, 64);
  EXPECT_EQ(manager.match_prefix(second, iota_tokens(40)), 0);
}

TEST(KvCacheManager, SequenceThatOptsOutNeitherFindsNorLeavesAnything) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}});
  SequenceKv opted_out = manager.open("", false, 64);
  ASSERT_TRUE(manager.allocate(opted_out, 40));
  manager.commit(opted_out, iota_tokens(40), 40);
  SequenceKv other = manager.open("", true, 64);
  EXPECT_EQ(manager.match_prefix(other, iota_tokens(40)), 0);
  manager.free(other);
  other = computed(manager, iota_tokens(40));
  SequenceKv again = manager.open("", false, 64);
  EXPECT_EQ(manager.match_prefix(again, iota_tokens(40)), 0);
}

TEST(KvCacheManager, ForgetsAPrefixWhoseBlockWasReused) {
  KvCacheManager manager = make_manager({{.num_blocks = 3}});
  SequenceKv first = computed(manager, iota_tokens(48));
  manager.free(first);
  SequenceKv other = computed(manager, iota_tokens(16, 1000));  // evicts the tail
  SequenceKv second = manager.open("", true, 64);
  EXPECT_EQ(manager.match_prefix(second, iota_tokens(49)), 32);
  EXPECT_EQ(manager.stats().num_evictions, 1);
}

// A sequence that waits for room looks its prefix up in every step, which makes it worth no more.
TEST(KvCacheManager, KeepsWhatWasOfUseNotWhatWasLookedUp) {
  for (const bool is_used : {false, true}) {
    KvCacheManager manager = make_manager({{.num_blocks = 3}});
    SequenceKv first = computed(manager, iota_tokens(16));
    manager.free(first);
    for (int i = 0; i < 100; ++i) {
      SequenceKv again = manager.open("", true, 64);
      EXPECT_EQ(manager.match_prefix(again, iota_tokens(17)), 16);
      if (is_used) manager.count_hits(again);
      manager.free(again);
    }
    for (TokenId token = 1000; token < 5000; token += 1000) {
      SequenceKv other = computed(manager, iota_tokens(16, token));
      manager.free(other);
    }
    SequenceKv last = manager.open("", true, 64);
    EXPECT_EQ(manager.match_prefix(last, iota_tokens(17)), is_used ? 16 : 0);
    manager.free(last);
  }
}

TEST(KvCacheManager, KeepsOneCopyOfAPrefixComputedTwice) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}});
  SequenceKv first = computed(manager, iota_tokens(40));
  SequenceKv second = computed(manager, iota_tokens(40));
  EXPECT_EQ(second.table(0)[0], first.table(0)[0]);
  EXPECT_EQ(second.table(0)[1], first.table(0)[1]);
  EXPECT_NE(second.table(0)[2], first.table(0)[2]);  // not full: private
  EXPECT_EQ(num_held(manager, 0), 4);
  EXPECT_EQ(manager.stats().num_deduplicated, 2);
}

TEST(KvCacheManager, WindowGroupFreesWhatLeftTheWindow) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}, {.num_blocks = 8, .window_tokens = 16}});
  SequenceKv kv = computed(manager, iota_tokens(63));
  EXPECT_EQ(kv.table(0).num_held(), 4);
  EXPECT_EQ(kv.table(1).first_held(), 3);  // position 63 sees 48..63
  EXPECT_EQ(manager.pool(1).num_free(), 7);
}

TEST(KvCacheManager, HitNeedsOnlyTheLastWindowOfAWindowGroup) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}, {.num_blocks = 3, .window_tokens = 16}});
  SequenceKv first = manager.open("", true, 80);
  const std::vector<TokenId> tokens = iota_tokens(80);
  for (std::int32_t end = 16; end <= 80; end += 16) {  // in chunks: the small pool reuses early blocks
    ASSERT_TRUE(manager.allocate(first, end));
    manager.commit(first, tokens, end);
  }
  manager.free(first);
  SequenceKv second = manager.open("", true, 80);
  EXPECT_EQ(manager.match_prefix(second, iota_tokens(81)), 80);
  EXPECT_EQ(second.table(0).num_held(), 5);
  EXPECT_EQ(second.table(1).first_held(), 4);
  manager.free(second);
  // The window before token 32 is gone from the small pool, so the hit may not end there.
  std::vector<TokenId> forked = iota_tokens(33);
  forked.back() = 999;
  SequenceKv third = manager.open("", true, 80);
  EXPECT_EQ(manager.match_prefix(third, forked), 0);
}

TEST(KvCacheManager, SharesFullBlocksWithoutThePrefixCache) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}}, false);
  SequenceKv first = computed(manager, iota_tokens(40));
  SequenceKv second = manager.open("", true, 64);
  EXPECT_EQ(manager.match_prefix(second, iota_tokens(40)), 0);
  EXPECT_EQ(manager.share_prefix(first, second, 39), 32);
  EXPECT_EQ(manager.pool(0).ref_count(first.table(0)[1]), 2);
  EXPECT_EQ(manager.pool(0).ref_count(first.table(0)[2]), 1);
  manager.free(first);
  manager.free(second);
  EXPECT_EQ(num_held(manager, 0), 0);
}

TEST(KvCacheManager, SharesNothingThatSlidAway) {
  KvCacheManager manager = make_manager({{.num_blocks = 8, .window_tokens = 16}}, false);
  SequenceKv first = computed(manager, iota_tokens(100));
  SequenceKv second = manager.open("", true, 64);
  EXPECT_EQ(manager.share_prefix(first, second, 40), 0);
  EXPECT_EQ(second.table(0).size(), 0);
}

TEST(KvCacheManager, FreesTheTailFirst) {
  KvCacheManager manager = make_manager({{.num_blocks = 3}});
  SequenceKv kv = computed(manager, iota_tokens(48));
  manager.free(kv);
  std::vector<BlockId> cached = manager.pool(0).free_list();
  cached.erase(cached.begin(), cached.end() - 3);  // the empty ones come first
  EXPECT_EQ(cached, (std::vector{BlockId{2}, BlockId{1}, BlockId{0}}));
  EXPECT_TRUE(kv.tables.empty());
}

TEST(KvCacheManager, TenantsShareOnlyWhatIsPublic) {
  const std::vector<TokenId> shared = iota_tokens(40);  // two blocks of it count
  KvCacheManager manager(
      {.groups = {{.num_blocks = 16}}, .public_prefixes = {shared}, .prefix_hash_key = {3, 4}});
  const auto prompt_of = [&](TokenId own) {
    std::vector<TokenId> prompt = shared;
    prompt.resize(32);
    prompt.resize(80, own);
    return prompt;
  };
  const auto num_found = [&](std::string_view tenant, const std::vector<TokenId>& prompt) {
    SequenceKv kv = manager.open({tenant, tenant, prompt}, true, 0);
    const std::int32_t found = manager.match_prefix(kv, prompt);
    EXPECT_TRUE(manager.allocate(kv, 80));
    manager.commit(kv, prompt, 80);
    manager.free(kv);
    return found;
  };
  EXPECT_EQ(num_found("ann", prompt_of(7)), 0);
  EXPECT_EQ(num_found("bob", prompt_of(7)), 32) << "the public part, and nothing of what follows";
  EXPECT_EQ(num_found("ann", prompt_of(7)), 64);
  EXPECT_EQ(num_found("bob", prompt_of(8)), 32);
  EXPECT_EQ(num_found("1:ann", iota_tokens(80, 3)), 0);
  EXPECT_EQ(num_found("ann", iota_tokens(80, 3)), 0) << "begins with nothing public";
  EXPECT_EQ(num_held(manager, 0), 0);
}

TEST(KvCacheManager, AQuietTenantKeepsItsPrefixWhileAnotherFloods) {
  KvCacheManager manager = make_manager({{.num_blocks = 32}});
  const auto run = [&](std::string_view tenant, const std::vector<TokenId>& prompt) {
    SequenceKv kv = manager.open({tenant, tenant, prompt}, true, 0);
    const std::int32_t found = manager.match_prefix(kv, prompt);
    const auto length = static_cast<std::int32_t>(prompt.size());
    EXPECT_TRUE(manager.allocate(kv, length));
    manager.commit(kv, prompt, length);
    manager.free(kv);
    return found;
  };
  run("quiet", iota_tokens(112));
  for (int i = 1; i <= 100; ++i) run("flood", iota_tokens(320, 1000 * i));
  EXPECT_EQ(run("quiet", iota_tokens(112)), 96);
}

TEST(KvCacheManager, ExpectsOfASequenceWhatItsPolicyLeaves) {
  KvCacheManager manager = make_manager({{.num_blocks = 8}});
  const auto missing = [&](const KvPolicySettings& policy) {
    SequenceKv kv = manager.open("", false, 0, policy);
    return static_cast<double>(manager.bytes_missing(kv, 96, 16)) /
           static_cast<double>(manager.cells().new_block_bytes(0));
  };
  EXPECT_DOUBLE_EQ(missing({}), 6.0);
  // The last chunk and the block it may begin in come on top of what all of it may keep.
  EXPECT_NEAR(missing({.policy = &ladder_policy(), .budget_share = 0.3}), 2 + 6 * 0.3, 0.001);
  EXPECT_NEAR(missing({.policy = &ladder_policy(), .budget_share = 0.9}), 6.0, 0.001)
      << "never more than all";
  EXPECT_DOUBLE_EQ(missing({.policy = find_policy("k4v4")}), 6.0) << "has no budget to go by";
}

// The share counts the bytes of f16, so it keeps more of the fewer bytes of 12 bits.
TEST(KvCacheManager, ExpectsOfASequenceWhatItsPolicyLeavesOfF16) {
  constexpr std::int32_t kHeadDim = 64;
  KvCacheManager manager({.groups = {{.num_blocks = 8, .head_dim = kHeadDim}}, .new_cells = KvFormat::kQ12});
  const auto missing = [&](double budget_share) {
    SequenceKv kv = manager.open("", false, 0, {.policy = &ladder_policy(), .budget_share = budget_share});
    return static_cast<double>(manager.bytes_missing(kv, 96, 16));
  };
  const auto block = static_cast<double>(cell_bytes(KvFormat::kQ12, kHeadDim));
  const auto in_f16 = static_cast<double>(6 * cell_bytes(KvFormat::kF16, kHeadDim));
  EXPECT_NEAR(missing(0.3), 2 * block + 0.3 * in_f16, 1.0);
  EXPECT_EQ(missing(0.8), 6 * block) << "never more than all";
}

TEST(KvCacheManager, HoldsMoreBlocksThanItHasRoomForAsComputed) {
  KvCacheManager manager = make_manager({{.num_blocks = 12, .cells_per_block = 32}});
  SequenceKv coarse = manager.open("", false, 0, {.policy = find_policy("k4v4")});
  ASSERT_TRUE(manager.allocate(coarse, 128));
  SequenceKv other = manager.open("", false, 0);
  EXPECT_FALSE(manager.allocate(other, 80));
  manager.commit(coarse, iota_tokens(128), 128);
  manager.demotion().begin();
  manager.demotion().demote(coarse, 128, 128);
  manager.demotion().end();
  EXPECT_TRUE(manager.allocate(other, 80));  // 3 of the 8 blocks take less than a third
  EXPECT_FALSE(manager.allocate(other, 112));
}

TEST(KvCacheManager, KnowsTheLongestSequence) {
  KvCacheManager manager = make_manager({{.num_blocks = 10}, {.num_blocks = 4, .window_tokens = 32}});
  EXPECT_EQ(manager.max_sequence_tokens(16), 160);  // a window and a chunk fit 4 blocks
  EXPECT_EQ(manager.max_sequence_tokens(64), 64);   // they do not: the sequence must fit whole
}

// Cells follow blocks: what is held or can still be found has them, nothing else does.
TEST(KvCacheManager, MemoryGoesBackWithTheLastHolderUnlessAPrefixNeedsIt) {
  KvCacheManager manager = make_manager({{.num_blocks = 8, .cells_per_block = 6}});
  const auto blocks_in_use = [&] {
    return manager.cells().arena().used_bytes() / manager.cells().new_block_bytes(0);
  };
  SequenceKv kv = computed(manager, iota_tokens(40));
  EXPECT_EQ(blocks_in_use(), 3);
  manager.free(kv);
  EXPECT_EQ(blocks_in_use(), 2);  // the full ones are cached
  SequenceKv large = manager.open("", false, 128);
  ASSERT_TRUE(manager.allocate(large, 128));
  EXPECT_EQ(blocks_in_use(), 8);
  manager.free(large);
  EXPECT_EQ(blocks_in_use(), 0);
}

TEST(KvCacheManager, LeavesNoNodeBehindWhenAllBlocksAreReused) {
  KvCacheManager manager = make_manager({{.num_blocks = 2}});
  SequenceKv first = computed(manager, iota_tokens(32), "tenant");
  manager.free(first);
  SequenceKv second = manager.open("", false, 32);
  ASSERT_TRUE(manager.allocate(second, 32));
  EXPECT_EQ(manager.prefix_index().num_nodes(), 0);
}

}  // namespace
}  // namespace kvasir::kv::kv_cache_manager_test
