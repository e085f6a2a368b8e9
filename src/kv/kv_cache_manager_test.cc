#include "kv/kv_cache_manager.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kv/kept_copies.h"
#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

std::vector<TokenId> iota_tokens(std::int32_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

KvCacheManager make_manager(std::vector<LayerGroup> groups, bool prefix_cache = true) {
  return KvCacheManager(
      {.groups = std::move(groups), .prefix_cache = prefix_cache, .prefix_hash_key = {3, 4}});
}

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
  EXPECT_FALSE(KvCacheManager::validate({}).has_value());
  const auto status = KvCacheManager::validate({.groups = {{.num_blocks = 0}}});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "KV cache: layer group 0 needs at least 1 block, got 0");
  EXPECT_FALSE(KvCacheManager::validate({.groups = {{.num_blocks = 1, .window_tokens = -1}}}).has_value());
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

// Of what 12 bits leave of the bytes in f16 the share keeps more.
TEST(KvCacheManager, ExpectsOfASequenceWhatItsPolicyLeavesOfF16) {
  constexpr std::int32_t kHeadDim = 64;
  KvCacheManager manager({.groups = {{.num_blocks = 8}}, .head_dim = kHeadDim, .new_cells = KvFormat::kQ12});
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
  manager.begin_demotions();
  manager.demote(coarse, 128, 128);
  manager.end_demotions();
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

// Makes ghosts of the first cell of each full block but the first.
class GhostPolicy final : public KvPolicy {
 public:
  std::string_view name() const override { return "ghosts"; }
  AttentionMemory memory() const override { return {.is_kept = true, .decay = 0.995f}; }
  bool has_budget() const override { return false; }
  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    for (std::int32_t block = 1; block < view.num_full_blocks; ++block) {
      if (view.format(block, 0) != KvFormat::kF16) continue;
      actions.push_back({.block = block, .to = KvFormat::kGhost, .kept_as = KvFormat::kK8V4});
    }
  }
};

TEST(KvCacheManager, KnowsTheGhostsOfAPrefixThatItFinds) {
  const GhostPolicy policy;
  KeptCopies disk;
  KvCacheManager manager({.groups = {{.num_blocks = 16, .cells_per_block = 2}},
                          .prefix_hash_key = {3, 4},
                          .disk = {.file = &disk, .bytes = 1 << 20}});
  const auto lost_share_after_attention_to_the_second_block = [&](SequenceKv& kv) {
    kv.scores[0].add({.num_blocks = 3,
                      .sum = {0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.0f},
                      .greatest = {0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.0f},
                      .num_queries = {1, 1}});
    return std::pair(kv.scores[0].lost_share(0), kv.scores[0].lost_share(1));
  };
  const std::vector<TokenId> tokens = iota_tokens(40);
  SequenceKv first = manager.open("", true, 40, {.policy = &policy});
  ASSERT_TRUE(manager.allocate(first, 40));
  manager.commit(first, tokens, 40);
  manager.begin_demotions();
  manager.demote(first, 40, 40);
  manager.end_demotions();
  ASSERT_EQ(manager.cells().at(0, first.table(0)[1], 0).format(), KvFormat::kGhost);
  SequenceKv second = manager.open("", true, 40, {.policy = &policy});
  ASSERT_EQ(manager.match_prefix(second, tokens), 32);
  EXPECT_EQ(lost_share_after_attention_to_the_second_block(second), (std::pair{1.0f, 0.0f}));
  EXPECT_EQ(lost_share_after_attention_to_the_second_block(first), (std::pair{1.0f, 0.0f}));
  // One that computed the same finds the equal blocks afterwards.
  SequenceKv third = manager.open("", true, 40, {.policy = &policy});
  ASSERT_TRUE(manager.allocate(third, 40));
  manager.commit(third, tokens, 40);
  ASSERT_EQ(third.table(0)[1], first.table(0)[1]);
  EXPECT_EQ(lost_share_after_attention_to_the_second_block(third), (std::pair{1.0f, 0.0f}));
  for (SequenceKv* kv : {&first, &second, &third}) manager.free(*kv);
}

// A prompt's budget is its own from the first token on: its beginning stays fine as long as there is room.
TEST(KvCacheManager, GivesTheBeginningOfAPromptTheBudgetOfAllOfIt) {
  constexpr std::int32_t kPromptTokens = 32 * kTokensPerBlock;
  const std::vector<TokenId> tokens = iota_tokens(kPromptTokens);
  for (const bool is_share_of_present : {false, true}) {
    SCOPED_TRACE(is_share_of_present);
    KvCacheManager manager = make_manager({{.num_blocks = 80, .cells_per_block = 2}});
    SequenceKv kv = manager.open(
        "", false, kPromptTokens,
        {.policy = &uniform_policy(), .budget_share = 0.5, .is_share_of_present = is_share_of_present});
    for (const std::int32_t num_computed_tokens : {kPromptTokens / 4, kPromptTokens}) {
      ASSERT_TRUE(manager.allocate(kv, num_computed_tokens));
      manager.commit(kv, tokens, num_computed_tokens);
      manager.begin_demotions();
      manager.demote(kv, num_computed_tokens, kPromptTokens);
      manager.end_demotions();
      manager.forget_conversions();
      const bool is_fine = manager.cells().at(0, kv.table(0)[1], 0).format() == KvFormat::kF16;
      EXPECT_EQ(is_fine, num_computed_tokens < kPromptTokens && !is_share_of_present);
    }
    EXPECT_LE(kv.bytes_use.last_share(), 0.5);
    manager.free(kv);
  }
}

// A prompt fills the memory to its end before its policy is asked.
void fill_memory_and_demote(KvCacheManager& manager, SequenceKv& kv, std::int32_t num_tokens) {
  ASSERT_TRUE(manager.allocate(kv, num_tokens));
  ASSERT_FALSE(manager.allocate(kv, num_tokens + 1));
  manager.commit(kv, iota_tokens(num_tokens), num_tokens);
  manager.begin_demotions();
  manager.demote(kv, num_tokens, num_tokens);
  manager.end_demotions();
}

TEST(KvCacheManager, APolicyKeepsItsBudgetInAPoolWithoutAFreePage) {
  constexpr std::int32_t kPromptTokens = 512 * kTokensPerBlock;
  KvCacheManager manager = make_manager({{.num_blocks = 512, .cells_per_block = 30}});
  SequenceKv kv = manager.open("", false, kPromptTokens, {.policy = &uniform_policy(), .budget_share = 0.3});
  fill_memory_and_demote(manager, kv, kPromptTokens);
  EXPECT_LE(kv.bytes_use.last_share(), 0.3);
  EXPECT_LE(manager.cells().arena().reserved_bytes(), manager.cells().arena().capacity_bytes() * 2 / 5);
}

// Where some heads keep f16 no page runs empty by itself.
TEST(KvCacheManager, APolicyThatLeavesSomeHeadsAloneKeepsItsBudgetInAPoolWithoutAFreePage) {
  constexpr std::int32_t kPromptTokens = 512 * kTokensPerBlock;
  LayerGroup group = {.num_blocks = 512, .cells_per_block = 30};
  group.cell_weights.assign(30, 0.1f);
  for (std::size_t cell = 0; cell < 30; cell += 3) group.cell_weights[cell] = 1000.0f;
  KvCacheManager manager = make_manager({group});
  SequenceKv kv = manager.open("", false, kPromptTokens, {.policy = &ladder_policy(), .budget_share = 0.5});
  fill_memory_and_demote(manager, kv, kPromptTokens);
  EXPECT_LE(kv.bytes_use.last_share(), 0.5);
  std::int32_t num_fine = 0;
  for (const BlockId block : kv.table(0).blocks()) {
    num_fine += manager.cells().at(0, block, 0).format() == KvFormat::kF16 ? 1 : 0;
  }
  EXPECT_EQ(num_fine, 512);
}

// A window frees by itself: what a policy did there would be counted twice.
TEST(KvCacheManager, LeavesLayersWithAWindowToThemselves) {
  constexpr std::int32_t kNumTokens = 12 * kTokensPerBlock;
  KvCacheManager manager = make_manager({{.num_blocks = 24}, {.num_blocks = 24, .window_tokens = 128}});
  SequenceKv kv = manager.open("", false, kNumTokens, {.policy = find_policy("k8v4")});
  ASSERT_TRUE(manager.allocate(kv, kNumTokens));
  manager.commit(kv, iota_tokens(kNumTokens), kNumTokens);
  manager.begin_demotions();
  manager.demote(kv, kNumTokens, kNumTokens);
  manager.end_demotions();
  const auto format = [&](std::int32_t group) {
    return manager.cells().at(group, kv.table(group)[kv.table(1).first_held()], 0).format();
  };
  EXPECT_EQ(format(0), KvFormat::kK8V4);
  EXPECT_EQ(format(1), KvFormat::kF16);
}

class SharedUnderAPolicy : public testing::Test {
 protected:
  static constexpr std::int32_t kNumTokens = 12 * kTokensPerBlock;

  // The same tokens under a policy: the second one finds the first one's blocks.
  SequenceKv hold(const KvPolicySettings& settings) {
    SequenceKv kv = manager_.open("", true, kNumTokens, settings);
    const std::int32_t num_cached = manager_.match_prefix(kv, tokens_);
    EXPECT_TRUE(manager_.allocate(kv, kNumTokens));
    manager_.commit(kv, tokens_, kNumTokens);
    num_cached_ = num_cached;
    return kv;
  }
  void act(std::vector<SequenceKv*> planning, std::vector<SequenceKv*> wishing) {
    manager_.begin_demotions();
    for (SequenceKv* kv : planning) manager_.demote(*kv, kNumTokens, kNumTokens);
    manager_.demote_shared(wishing);
    manager_.end_demotions();
    manager_.forget_conversions();
  }
  KvFormat format_of(const SequenceKv& kv, std::int32_t block) const {
    return manager_.cells().at(0, kv.table(0)[block], 0).format();
  }

  KvCacheManager manager_ = make_manager({{.num_blocks = 40, .cells_per_block = 2}});
  const std::vector<TokenId> tokens_ = iota_tokens(kNumTokens);
  const KvPolicySettings k8v4_ = {.policy = find_policy("k8v4")};
  std::int32_t num_cached_ = 0;
};

TEST_F(SharedUnderAPolicy, ABlockWaitsForAllWhoHoldIt) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  ASSERT_EQ(num_cached_, kNumTokens - kTokensPerBlock);
  act({&first}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kF16);
  act({&second}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
  EXPECT_TRUE(first.wishes.empty());
  EXPECT_TRUE(second.wishes.empty());
}

TEST_F(SharedUnderAPolicy, TheMostCarefulHolderDecides) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  first.policy.policy = find_policy("k3v3");  // as if the fingerprint did not keep them apart
  act({&first, &second}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
}

TEST_F(SharedUnderAPolicy, AWishIsGrantedWhenTheOthersAreGone) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  act({&first}, {&first, &second});
  manager_.free(second);
  act({}, {&first});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
}

// An old wish may be coarser than what the policy wants by now.
TEST_F(SharedUnderAPolicy, AWishEndsWhenItsHolderPlansAloneAgain) {
  SequenceKv first = hold({.policy = find_policy("k3v3")}), second = hold({.policy = find_policy("k3v3")});
  act({&first}, {&first, &second});
  ASSERT_FALSE(first.wishes.empty());
  manager_.free(second);
  first.policy.policy = find_policy("k8v4");
  first.num_planned_blocks = 0;
  act({&first}, {&first});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
  EXPECT_TRUE(first.wishes.empty());
}

TEST_F(SharedUnderAPolicy, WhoAskedForExactKvSharesWithNobodyLossy) {
  SequenceKv lossy = hold(k8v4_);
  act({&lossy}, {&lossy});
  const SequenceKv exact = hold({});
  EXPECT_EQ(num_cached_, 0);
  EXPECT_EQ(format_of(exact, 2), KvFormat::kF16);
}

}  // namespace
}  // namespace kvasir::kv
