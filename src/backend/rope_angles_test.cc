#include "backend/cpu/rope_angles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kvasir::backend::rope_angles_test {
namespace {

std::vector<double> frequencies(std::int32_t half_dim, double base) {
  std::vector<double> all;
  for (std::int32_t i = 0; i < half_dim; ++i)
    all.push_back(std::pow(base, -static_cast<double>(i) / half_dim));
  return all;
}

std::vector<float> angles(RopeAngles& rope_angles, std::size_t rope, std::int32_t position, int worker = 0) {
  std::vector<float> values(2 * static_cast<std::size_t>(rope_angles.half_dim(rope)));
  rope_angles.compute(rope, position, worker, values.data());
  return values;
}

TEST(RopeAngles, AreThoseOfTheLibraryToARoundingOfFloat) {
  const std::vector<double> frequency = frequencies(64, 10000.0);
  RopeAngles rope_angles(1);
  rope_angles.set_ropes(std::vector<RopeTable>{{.inverse_frequencies = frequency}});
  for (const std::int32_t position : {0, 1, 15, 16, 17, 511, 8191, 131071, 1048575}) {
    const std::vector<float> values = angles(rope_angles, 0, position);
    for (std::size_t i = 0; i < frequency.size(); ++i) {
      EXPECT_NEAR(values[i], std::cos(position * frequency[i]), 3.1e-8) << position << " " << i;
      EXPECT_NEAR(values[frequency.size() + i], std::sin(position * frequency[i]), 3.1e-8) << position;
    }
  }
}

TEST(RopeAngles, DependOnThePositionAlone) {
  const std::vector<double> near = frequencies(32, 10000.0), far = frequencies(16, 1e6);
  const std::vector<RopeTable> ropes = {{.inverse_frequencies = near}, {.inverse_frequencies = far}};
  RopeAngles upwards(2), shuffled(2);
  upwards.set_ropes(ropes);
  shuffled.set_ropes(ropes);
  std::vector<std::vector<float>> expected;
  for (std::int32_t position = 0; position < 64; ++position) expected.push_back(angles(upwards, 1, position));
  for (std::int32_t i = 0; i < 64; ++i) {
    const std::int32_t position = i * 37 % 64;
    angles(shuffled, 0, position, i % 2);
    EXPECT_EQ(angles(shuffled, 1, position, i % 2), expected[static_cast<std::size_t>(position)]);
  }
}

TEST(RopeAngles, FollowTheFrequenciesTheyAreGiven) {
  const std::vector<double> first = frequencies(8, 100.0), second = frequencies(8, 10000.0);
  RopeAngles changed(1), fresh(1);
  changed.set_ropes(std::vector<RopeTable>{{.inverse_frequencies = first}});
  angles(changed, 0, 35);
  changed.set_ropes(std::vector<RopeTable>{{.inverse_frequencies = second}});
  fresh.set_ropes(std::vector<RopeTable>{{.inverse_frequencies = second}});
  EXPECT_EQ(angles(changed, 0, 35), angles(fresh, 0, 35));
}

}  // namespace
}  // namespace kvasir::backend::rope_angles_test
