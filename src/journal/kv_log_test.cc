#include "journal/kv_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "journal/log_reader.h"
#include "journal/schema.h"
#include "kv/policy/registry.h"

namespace kvasir::journal::kv_log_test {
namespace {

using kv::KvFormat;

class KvLogFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("kvasir-log-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "kv.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<KvLog> open(RecordQueue::Limits limits = {},
                              std::chrono::milliseconds close_time = std::chrono::minutes(1)) {
    auto log = KvLog::open(path_, {.version = "1.2.3",
                                   .warn = [this](std::string_view line) { warnings_.emplace_back(line); },
                                   .limits = limits,
                                   .close_time = close_time});
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  // Layers 3 and 5 of two KV heads each, which three query heads share.
  static kv::RunRecord run() {
    return {.model = "tiny",
            .groups = {{.layers = {0, 1}, .num_kv_heads = 2}, {.layers = {3, 5}, .num_kv_heads = 2}},
            .query_heads_per_kv_head = 3,
            .format_costs = kv::usual_format_costs()};
  }
  static kv::SequenceRecord sequence(std::int64_t hold) {
    return {
        .hold = kv::HoldId{hold},
        .holder = {.request_id = RequestId{7}, .choice = 1, .num_prompt_tokens = 48, .client_id = "cmpl-x"},
        .policy = {.policy = &kv::ladder_policy(), .budget_share = 0.3}};
  }
  static kv::StepRecord step(std::int64_t hold, std::int32_t num_tokens, std::int32_t num_actions) {
    kv::StepRecord step{.hold = kv::HoldId{hold},
                        .num_computed_tokens = num_tokens,
                        .bytes_share_before = 0.5,
                        .bytes_share_after = 0.25};
    step.num_cells[static_cast<std::size_t>(KvFormat::kQ8)] = num_actions;
    for (std::int32_t i = 0; i < num_actions; ++i) {
      step.actions.push_back({.block = i / 4,
                              .cell = i % 4,
                              .forecast = 0.3f,
                              .group = 1,
                              .from = KvFormat::kF16,
                              .to = KvFormat::kQ8,
                              .reason = kv::ActionReason::kLeastLossPerByte});
    }
    return step;
  }
  std::int64_t number(const std::string& sql) {
    auto database = open_for_reading(path_);
    EXPECT_TRUE(database) << database.error().message;
    auto query = database->prepare(sql);
    EXPECT_TRUE(query) << query.error().message;
    EXPECT_TRUE(query->next().value_or(false)) << sql;
    return query->integer(0);
  }

  std::filesystem::path folder_, path_;
  std::vector<std::string> warnings_;
};

TEST_F(KvLogFile, HoldsEverythingThatCameWhenItIsClosed) {
  {
    const auto log = open();
    log->begin_run(run());
    log->begin_sequence(sequence(1));
    for (std::int32_t i = 1; i <= 50; ++i) {
      auto one = step(1, 16 * i, 8);
      for (auto& action : one.actions) action.block += 2 * i;
      log->add_step(std::move(one));
    }
    kv::BytesUse bytes_use;
    bytes_use.add(0.5, {.bytes = 1, .full_bytes = 4});
    log->end_sequence({.hold = kv::HoldId{1}, .num_computed_tokens = 810, .bytes_use = bytes_use});
  }
  EXPECT_EQ(number("SELECT count(*) FROM runs WHERE model = 'tiny' AND version = '1.2.3' "
                   "AND ended_at IS NOT NULL AND dropped_steps = 0"),
            1);
  EXPECT_EQ(number("SELECT count(*) FROM steps WHERE bytes_before = 0.5 AND bytes_after = 0.25"), 50);
  EXPECT_EQ(number("SELECT count(*) FROM actions"), 400);
  EXPECT_EQ(number("SELECT count(*) FROM actions WHERE layer IN (3, 5) AND head IN (0, 1)"), 400);
  EXPECT_EQ(number("SELECT count(*) FROM named_actions WHERE from_format = 'f16' AND to_format = 'q8' "
                   "AND reason = 'least-loss' AND abs(forecast - 0.1) < 1e-6"),
            400);
  EXPECT_EQ(number("SELECT count(*) FROM blocks WHERE changes = 1 AND realised IS NULL"), 400);
  EXPECT_EQ(number("SELECT tokens FROM sequences WHERE client_id = 'cmpl-x' AND bytes_share = 0.25"), 810);
  EXPECT_EQ(number("SELECT sum(bytes) FROM step_formats WHERE step = 1"),
            8 * kv::cell_bytes(KvFormat::kQ8, 64));
  EXPECT_TRUE(warnings_.empty());
}

// While it runs others can read it: what came long enough ago is there.
TEST_F(KvLogFile, IsInWalModeAndCanBeReadMeanwhile) {
  const auto log = open();
  log->begin_run(run());
  auto database = open_for_reading(path_);
  ASSERT_TRUE(database);
  auto mode = database->prepare("PRAGMA journal_mode");
  ASSERT_TRUE(mode && mode->next().value_or(false));
  EXPECT_EQ(mode->text(0), "wal");
  for (int tries = 0; tries < 500 && number("SELECT count(*) FROM runs") == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(number("SELECT count(*) FROM runs WHERE ended_at IS NULL"), 1);
}

TEST_F(KvLogFile, SaysHowMuchItDidNotGet) {
  {
    const auto log = open({.max_records = 8});
    log->begin_run(run());
    log->begin_sequence(sequence(1));
    for (std::int32_t i = 1; i <= 40; ++i) log->add_step(step(1, 16 * i, 3));
  }
  const std::int64_t num_dropped = number("SELECT dropped_steps FROM runs");
  EXPECT_GT(num_dropped, 0);
  EXPECT_EQ(number("SELECT count(*) FROM steps") + num_dropped, 40);
  EXPECT_EQ(number("SELECT dropped_actions FROM runs"), 3 * num_dropped);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(std::to_string(num_dropped) + " steps"), std::string::npos) << warnings_[0];
}

TEST_F(KvLogFile, ThatBreaksWarnsOnceAndTakesWhatComesAllTheSame) {
  {
    const auto log = open();
    auto database = sqlite::Database::open(path_, sqlite::Database::Access::kReadWrite);
    ASSERT_TRUE(database && database->execute("DROP TABLE steps"));
    log->begin_run(run());
    log->begin_sequence(sequence(1));
    for (std::int32_t i = 1; i <= 10'000; ++i) log->add_step(step(1, 16 * i, 3));
    log->end_sequence({.hold = kv::HoldId{1}});
  }
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("kv.db: cannot be written: "), std::string::npos) << warnings_[0];
}

TEST_F(KvLogFile, WhoseDiskStallsKeepsNobodyAtTheEnd) {
  std::unique_ptr<KvLog> log = open({}, std::chrono::milliseconds(100));
  auto blocker = sqlite::Database::open(path_, sqlite::Database::Access::kReadWrite);
  log->begin_run(run());
  while (number("SELECT count(*) FROM runs") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(blocker && blocker->execute("BEGIN IMMEDIATE"));  // for which SQLite waits for seconds
  log->begin_sequence(sequence(1));
  const auto began = std::chrono::steady_clock::now();
  log.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("kv.db: its disk did not take the last records within 0.1 s"), std::string::npos);
  ASSERT_TRUE(blocker->execute("COMMIT"));  // what its thread has, it writes
  for (int tries = 0; tries < 500 && number("SELECT count(*) FROM runs WHERE ended_at IS NOT NULL") == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(number("SELECT count(*) FROM sequences"), 1);
}

TEST_F(KvLogFile, GoesOnWithALogThatIsThere) {
  for (int i = 0; i < 2; ++i) {
    const auto log = open();
    log->begin_run(run());
    log->begin_sequence(sequence(1));
    log->add_step(step(1, 16, 4));
  }
  EXPECT_EQ(number("SELECT count(*) FROM runs"), 2);
  EXPECT_EQ(number("SELECT count(DISTINCT run) FROM sequences"), 2);
  EXPECT_EQ(number("SELECT count(DISTINCT sequence) FROM steps"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM formats"), kv::kNumKvFormats);
}

TEST_F(KvLogFile, LeavesFilesAloneThatAreNoLog) {
  const auto refusal = [&] {
    const auto log = KvLog::open(path_, {});
    return log ? "none" : log.error().message;
  };
  std::ofstream(path_) << "a diary, not a database, and long enough to be asked about its header";
  const auto before = std::filesystem::file_size(path_);
  EXPECT_EQ(refusal(), path_.string() + ": is no KV log of kvasir");
  EXPECT_EQ(std::filesystem::file_size(path_), before);
  std::filesystem::remove(path_);
  {
    auto database = sqlite::Database::open(path_, sqlite::Database::Access::kReadWrite);
    ASSERT_TRUE(database && database->execute("CREATE TABLE contacts(name TEXT)"));
  }
  EXPECT_EQ(refusal(), path_.string() + ": is no KV log of kvasir");
  EXPECT_FALSE(std::filesystem::exists(path_.string() + "-wal"));
}

TEST_F(KvLogFile, TheReaderLeavesNothingBesideIt) {
  path_ = path_.parent_path() / "100% mine? #1.db";
  {
    const auto log = open();
    log->begin_run(run());
    log->begin_sequence(sequence(1));
    log->add_step(step(1, 64, 12));
  }
  {
    auto reader = LogReader::open(path_);
    ASSERT_TRUE(reader) << reader.error().message;
    const auto sequences = reader->sequences();
    ASSERT_TRUE(sequences && sequences->size() == 1u);
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path())) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(names, std::vector<std::string>{path_.filename().string()});
}

TEST_F(KvLogFile, TheReaderFindsStepsByTokenAndActionsByBlock) {
  {
    const auto log = open();
    log->begin_run(run());
    log->begin_sequence(sequence(1));
    log->add_step(step(1, 64, 12));
    log->add_step(step(1, 128, 4));
  }
  auto reader = LogReader::open(path_);
  ASSERT_TRUE(reader);
  const auto sequences = reader->sequences();
  ASSERT_TRUE(sequences && sequences->size() == 1u);
  EXPECT_EQ(sequences->front().policy, "ladder");
  EXPECT_EQ(sequences->front().num_steps, 2);
  EXPECT_EQ(sequences->front().num_actions, 16);
  EXPECT_FALSE(sequences->front().tokens);
  EXPECT_FALSE(reader->find_sequence(2).value());
  EXPECT_EQ(reader->steps(1)->size(), 2u);
  EXPECT_EQ(reader->steps_at(1, 64)->at(0).token, 64);
  EXPECT_EQ(reader->steps_at(1, 65)->at(0).token, 128);
  EXPECT_TRUE(reader->steps_at(1, 129)->empty());
  const std::int64_t id = reader->steps_at(1, 1)->at(0).id;
  EXPECT_EQ(reader->actions(id, std::nullopt)->size(), 12u);
  const auto of_block = reader->actions(id, 2);
  ASSERT_EQ(of_block->size(), 4u);
  EXPECT_EQ(of_block->at(3).layer, 5);
  EXPECT_EQ(of_block->at(3).head, 1);
  EXPECT_NEAR(*of_block->at(3).forecast, 0.1, 1e-6);
  const double saved =
      static_cast<double>(kv::cell_bytes(KvFormat::kF16, 64) - kv::cell_bytes(KvFormat::kQ8, 64));
  EXPECT_NEAR(*of_block->at(3).price * saved, 0.1 * kv::usual_format_costs()[KvFormat::kQ8], 1e-9);
}

kv::ShadowRecord shadow(std::int64_t request, std::int64_t num_prompt_tokens, double kl) {
  return {.request_id = RequestId{static_cast<std::uint64_t>(request)},
          .client_id = "chatcmpl-" + std::to_string(request),
          .tenant = "anna",
          .policy = "ladder",
          .quality = "gate",
          .budget_share = 0.25,
          .num_prompt_tokens = num_prompt_tokens,
          .num_answer_tokens = 10,
          .is_scored = kl >= 0.0,
          .kl = kl,
          .log_ratio = 2 * kl,
          .num_tokens_agreed = 9};
}

TEST_F(KvLogFile, HoldsShadowsOfSeveralThreadsBySlice) {
  {
    const auto log = open();
    log->begin_run(run());
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&log, i] {
        for (int j = 0; j < 20; ++j) log->add_shadow(shadow(20 * i + j, i < 2 ? 100 : 2000, i % 2 == 0 ? 0.02 : 0.04));
      });
    }
    log->begin_sequence(sequence(1));
    threads.clear();
    log->add_shadow(shadow(80, 100, -1.0));
    EXPECT_EQ(log->num_dropped(), 0);
  }
  EXPECT_EQ(number("SELECT count(*) FROM shadows WHERE run = 1 AND tenant = 'anna' AND kl IS NOT NULL"), 80);
  auto reader = LogReader::open(path_);
  ASSERT_TRUE(reader);
  const auto all = reader->shadows(ShadowSlice::kNone);
  ASSERT_TRUE(all && all->size() == 1u);
  EXPECT_EQ(all->front().num_scored, 80);
  EXPECT_EQ(all->front().num_unknown, 1);
  EXPECT_NEAR(*all->front().kl, 0.03, 1e-12);
  EXPECT_NEAR(*all->front().kl_worst, 0.04, 1e-12);
  EXPECT_NEAR(*all->front().log_ratio, 0.06, 1e-12);
  EXPECT_NEAR(*all->front().top1, 0.9, 1e-12);
  const auto slices = reader->shadows(ShadowSlice::kPromptLength);
  ASSERT_TRUE(slices && slices->size() == 2u);
  EXPECT_EQ(slices->at(0).slice, "0-255");
  EXPECT_EQ(slices->at(0).num_unknown, 1);
  EXPECT_EQ(slices->at(1).slice, "1024-4095");
  for (const ShadowSlice slice : {ShadowSlice::kAnswerLength, ShadowSlice::kCachedShare, ShadowSlice::kTenant}) {
    const auto found = reader->shadows(slice);
    ASSERT_TRUE(found && found->size() == 1u);
    EXPECT_EQ(found->front().num_scored, 80);
  }
}

TEST_F(KvLogFile, ALogOfTheVersionWithoutShadowsIsReadAndGoesOn) {
  {
    const auto log = open();
    log->begin_run(run());
  }
  {
    auto database = sqlite::Database::open(path_, sqlite::Database::Access::kReadWrite);
    ASSERT_TRUE(database && database->execute("DROP TABLE shadows; PRAGMA user_version = 3;"));
  }
  {
    auto reader = LogReader::open(path_);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_TRUE(reader->shadows(ShadowSlice::kNone)->empty());
  }
  {
    const auto log = open();
    log->begin_run(run());
    log->add_shadow(shadow(1, 10, 0.5));
  }
  EXPECT_EQ(number("SELECT count(*) FROM shadows WHERE run = 2"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM runs"), 2);
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace kvasir::journal::kv_log_test
