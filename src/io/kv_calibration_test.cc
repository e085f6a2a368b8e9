#include "io/kv_calibration.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "io/model_fingerprint.h"

namespace kvasir::io::kv_calibration_test {
namespace {

class KvCalibrationFile : public testing::Test {
 protected:
  KvCalibrationFile() { std::filesystem::remove(path_); }
  ~KvCalibrationFile() override { std::filesystem::remove(path_); }
  void write(const char* text) const { std::ofstream(path_) << text; }

  // Tests of one suite run beside each other, each in a process.
  const std::string path_ =
      kv_calibration_path(testing::TempDir() + "kvasir-calibration-" + std::to_string(::getpid()) + ".gguf");
};

TEST_F(KvCalibrationFile, IsReadAsItWasWritten) {
  ASSERT_TRUE(write_kv_calibration(path_, {.model = "12-ab", .costs = {{"q8", 0.002}, {"k4v4", 0.125}}}));
  const auto read = read_kv_calibration(path_);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->costs, (std::map<std::string, double>{{"k4v4", 0.125}, {"q8", 0.002}}));
  EXPECT_EQ((*read)->model, "12-ab");
  EXPECT_TRUE((*read)->head_weights.empty());
}

TEST_F(KvCalibrationFile, KeepsAForecast) {
  ASSERT_TRUE(write_kv_calibration(path_, {.costs = {{"q8", 0.002}},
                                           .forecast = {.input_weights = {1.5, -2.0}, .hidden_biases = {0.25}, .output_weights = {3.0}, .output_biases = {-0.5}}}));
  const auto read = read_kv_calibration(path_);
  ASSERT_TRUE(read && *read) << read.error().message;
  EXPECT_EQ((*read)->forecast.input_weights, (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ((*read)->forecast.hidden_biases, (std::vector<double>{0.25}));
  EXPECT_EQ((*read)->forecast.output_weights, (std::vector<double>{3.0}));
  EXPECT_EQ((*read)->forecast.output_biases, (std::vector<double>{-0.5}));
}

TEST_F(KvCalibrationFile, KeepsTheChanceOfAForecastThatHasOne) {
  const KvForecastNumbers numbers = {.input_weights = {1.5}, .hidden_biases = {0.25}, .output_weights = {3.0}, .output_biases = {-0.5}};
  ASSERT_TRUE(write_kv_calibration(path_, {.costs = {{"q8", 0.002}}, .forecast = numbers}));
  const auto without = read_kv_forecast(path_);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_TRUE(without->forecast.asked_weights.empty() && without->forecast.asked_biases.empty()) << "as older versions wrote it";
  KvForecastNumbers more = numbers;
  more.asked_weights = {2.0};
  more.asked_biases = {-4.0};
  ASSERT_TRUE(write_kv_calibration(path_, {.costs = {{"q8", 0.002}}, .forecast = more}));
  const auto with = read_kv_forecast(path_);
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->forecast.asked_weights, more.asked_weights);
  EXPECT_EQ(with->forecast.asked_biases, more.asked_biases);
}

TEST_F(KvCalibrationFile, AForecastThatIsNotThereIsSaid) {
  const auto none = read_kv_forecast(path_);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("there is no such file"), std::string::npos) << none.error().message;
  ASSERT_TRUE(write_kv_calibration(path_, {.costs = {{"q8", 0.002}}}));
  const auto without = read_kv_forecast(path_);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("it has no forecast"), std::string::npos) << without.error().message;
}

TEST_F(KvCalibrationFile, AForecastThatIsBrokenIsNamed) {
  write(R"({"kv_format_costs": {}, "kv_forecast": {"input_weights": [1, "x"]}})");
  const auto read = read_kv_calibration(path_);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("a number of input_weights in kv_forecast is none"), std::string::npos) << read.error().message;
  write(R"({"kv_format_costs": {}, "kv_forecast": {"input_weights": [1]}})");
  const auto shorter = read_kv_calibration(path_);
  ASSERT_FALSE(shorter);
  EXPECT_NE(shorter.error().message.find("kv_forecast has no array hidden_biases"), std::string::npos) << shorter.error().message;
  write(R"({"kv_format_costs": {}, "kv_forecast": {"input_weights": [], "hidden_biases": [], "output_weights": [], "output_biases": [],
            "asked_weights": 3}})");
  const auto number = read_kv_calibration(path_);
  ASSERT_FALSE(number);
  EXPECT_NE(number.error().message.find("kv_forecast has no array asked_weights"), std::string::npos) << number.error().message;
}

TEST_F(KvCalibrationFile, KeepsACostCurve) {
  const KvCostCurve curve = {.policy = "ladder-priced",
                             .num_windows = 3,
                             .least_kl = 0.001,
                             .kl_per_cost = 0.25,
                             .points = {{.budget = 0.3, .planned = 0.02, .kl = 0.006, .ratio_low = 0.999, .ratio_high = 1.003},
                                        {.budget = 0.1, .planned = 0.3, .kl = 0.08, .ratio_low = 1.02, .ratio_high = 1.125}}};
  ASSERT_TRUE(write_kv_calibration(path_, {.costs = {{"q8", 0.002}}, .cost_curve = curve}));
  const auto read = read_kv_calibration(path_);
  ASSERT_TRUE(read && *read) << read.error().message;
  const KvCostCurve& found = (*read)->cost_curve;
  EXPECT_EQ(found.policy, "ladder-priced");
  EXPECT_EQ(found.num_windows, 3);
  EXPECT_EQ(found.least_kl, 0.001);
  EXPECT_EQ(found.kl_per_cost, 0.25);
  ASSERT_EQ(found.points.size(), 2u);
  EXPECT_EQ(found.points[1].budget, 0.1);
  EXPECT_EQ(found.points[1].planned, 0.3);
  EXPECT_EQ(found.points[1].kl, 0.08);
  EXPECT_EQ(found.points[0].ratio_low, 0.999);
  EXPECT_EQ(found.points[0].ratio_high, 1.003);
}

TEST_F(KvCalibrationFile, ACostCurveThatIsBrokenIsNamed) {
  const auto refuses = [&](const std::string& curve, const char* why) {
    write((R"({"kv_format_costs": {}, "kv_cost_curve": )" + curve + "}").c_str());
    const auto read = read_kv_calibration(path_);
    ASSERT_FALSE(read) << curve;
    EXPECT_NE(read.error().message.find(why), std::string::npos) << read.error().message;
  };
  const std::string head = R"({"policy": "ladder-priced", "windows": 1, "least_kl": 0, "kl_per_cost": 1, "points": )";
  const std::string point = R"({"budget": 0.3, "planned": 0, "kl": 0, "ratio_low": 1, "ratio_high": 1})";
  refuses("{}", "kv_cost_curve is not whole");
  refuses(head + R"([{"budget": -1}]})", "budget of a point in kv_cost_curve is no number");
  refuses(head + R"([{"budget": 0.3}]})", "planned of a point in kv_cost_curve is no number");
  refuses(head + "[" + point + ", " + point + "]}", "budgets in kv_cost_curve do not fall");
}

TEST_F(KvCalibrationFile, KeepsTheWeightsOfHeadsInTheirOrder) {
  ASSERT_TRUE(write_kv_calibration(path_, {.costs = {{"q8", 0.002}}, .head_weights = {0.25, 2.5, 0.1}}));
  const auto read = read_kv_calibration(path_);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->head_weights, (std::vector<double>{0.25, 2.5, 0.1}));
}

TEST_F(KvCalibrationFile, OfAnOlderVersionHasNoWeights) {
  write("{\"kv_format_costs\": {\"q8\": 0.002}}");
  const auto read = read_kv_calibration(path_);
  ASSERT_TRUE(read && *read);
  EXPECT_TRUE((*read)->head_weights.empty());
}

TEST_F(KvCalibrationFile, NeedNotBeThere) {
  const auto read = read_kv_calibration(path_);
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST_F(KvCalibrationFile, OfAnythingElseIsRefusedByName) {
  for (const char* text : {"", "{", "[]", "{\"kv_format_costs\": 3}", "{\"kv_format_costs\": {\"q8\": -1}}",
                           "{\"kv_format_costs\": {\"q8\": \"x\"}}", "{\"kv_format_costs\": {\"q8\": 0}}",
                           "{\"kv_format_costs\": {\"q8\": 1e308}}",
                           "{\"kv_format_costs\": {\"q8\": 1}, \"kv_head_weights\": 1}",
                           "{\"kv_format_costs\": {\"q8\": 1}, \"kv_head_weights\": [1, 0]}"}) {
    write(text);
    const auto read = read_kv_calibration(path_);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadFile);
    EXPECT_NE(read.error().message.find(path_), std::string::npos);
  }
}

TEST_F(KvCalibrationFile, SaysWhyItCannotBeWritten) {
  const Status status = write_kv_calibration("/nowhere/x.kv.json", {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kMachine);
}

TEST(ModelFingerprint, IsOfTheBytesAndTheirNumber) {
  const std::string path = testing::TempDir() + "kvasir-fingerprint-" + std::to_string(::getpid());
  const auto of = [&path](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return model_fingerprint(path).value();
  };
  const std::string bytes(1 << 20, 'a');
  std::string other = bytes;
  other[other.size() / 2] = 'b';
  EXPECT_EQ(of(bytes), of(bytes));
  EXPECT_NE(of(bytes), of(other));
  EXPECT_NE(of(bytes), of(bytes + "a"));
  EXPECT_EQ(of("").substr(0, 2), "0-");
  std::filesystem::remove(path);
  EXPECT_EQ(model_fingerprint(path).error().kind, ErrorKind::kBadFile);
}

}  // namespace
}  // namespace kvasir::io::kv_calibration_test
