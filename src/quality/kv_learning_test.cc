// A promotion writes the forecast, and leaves what else the file has of the model.
#include "quality/kv_learning.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"
#include "kv/policy/forecast_network.h"

namespace kvasir::quality {
namespace {

constexpr const char* kModel = KVASIR_SOURCE_DIR "/tests/cases/models/llama-f32.gguf";

class SavedChampion : public testing::Test {
 protected:
  SavedChampion() : path_(testing::TempDir() + "kvasir-saved-champion.json") { std::filesystem::remove(path_); }
  ~SavedChampion() override { std::filesystem::remove(path_); }

  static learn::Champion champion() {
    kv::ForecastNetwork network{.hidden_biases = std::vector<kv::ForecastNetwork::Hidden>(1), .output_biases = {0.5f}};
    return {.version = 3, .network = network, .num_rows = 640, .num_sequences = 200, .cost_ratio = 0.9};
  }
  io::KvCalibration saved() const {
    const auto file = io::read_kv_calibration(path_);
    EXPECT_TRUE(file && *file) << path_;
    return file && *file ? **file : io::KvCalibration{};
  }

  // 0 where there is no file yet.
  std::int64_t version_now() const {
    const auto file = io::read_kv_calibration(path_);
    EXPECT_TRUE(file) << path_;
    return file && *file ? (*file)->learned.version : 0;
  }

  const std::string path_;
};

TEST_F(SavedChampion, IsAForecastOfTheModel) {
  ASSERT_TRUE(save_champion(path_, kModel, champion()));
  const io::KvCalibration file = saved();
  EXPECT_EQ(file.model, io::model_fingerprint(kModel).value());
  EXPECT_EQ(file.forecast.output_biases, std::vector<double>{0.5});
  EXPECT_EQ(file.learned.version, 3);
  EXPECT_TRUE(file.costs.empty());
}

TEST_F(SavedChampion, LeavesTheCalibrationOfTheSameModel) {
  const std::string model = io::model_fingerprint(kModel).value();
  ASSERT_TRUE(io::write_kv_calibration(path_, {.model = model, .costs = {{"q8", 0.002}}, .head_weights = {0.5, 1.5}}));
  ASSERT_TRUE(save_champion(path_, kModel, champion()));
  const io::KvCalibration file = saved();
  EXPECT_EQ(file.costs.at("q8"), 0.002);
  EXPECT_EQ(file.head_weights, (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(file.forecast.output_biases, std::vector<double>{0.5});
}

TEST_F(SavedChampion, TakesNothingOfAnotherModel) {
  ASSERT_TRUE(io::write_kv_calibration(path_, {.model = "another", .costs = {{"q8", 0.002}}, .head_weights = {}}));
  ASSERT_TRUE(save_champion(path_, kModel, champion()));
  EXPECT_TRUE(saved().costs.empty());
}

// The file of a process that saves one after another, until it is killed.
TEST_F(SavedChampion, IsWholeAfterAKill) {
  constexpr int kKills = 20, kMostCells = 400;
  std::int64_t last_version = 0;
  for (int kills = 1; kills <= kKills; ++kills) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::int64_t version = last_version + 1;; ++version) {
        learn::Champion saved = champion();
        saved.version = version;
        const auto cells = static_cast<std::size_t>(1 + version % kMostCells);  // files of many lengths
        saved.network->hidden_biases.resize(cells);
        saved.network->output_biases.assign(cells, 0.25f);
        if (!save_champion(path_, kModel, saved)) ::_exit(1);
      }
    }
    while (version_now() <= last_version) ::usleep(1000);
    ::usleep(static_cast<useconds_t>(1000 * kills));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it could not save";
    const io::KvCalibration file = saved();
    ASSERT_GE(file.learned.version, std::max<std::int64_t>(1, last_version));
    EXPECT_EQ(std::ssize(file.forecast.output_biases), 1 + file.learned.version % kMostCells);
    last_version = file.learned.version;
  }
  EXPECT_GE(last_version, kKills);
}

TEST_F(SavedChampion, IsNotWrittenOverSomethingElse) {
  std::ofstream(path_) << "notes";
  EXPECT_FALSE(save_champion(path_, kModel, champion()));
}

}  // namespace
}  // namespace kvasir::quality
