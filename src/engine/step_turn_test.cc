#include "engine/step_turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kvasir::step_turn_test {

TEST(StepTurn, LetsOneStepAtATime) {
  StepTurn turns;
  std::atomic<int> num_inside{0}, num_steps{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> engines;
  for (int i = 0; i < 4; ++i) {
    engines.emplace_back([&] {
      for (int step = 0; step < 500; ++step) {
        const StepTurn::Held held = StepTurn::take(&turns);
        if (num_inside.fetch_add(1) != 0) overlapped = true;
        ++num_steps;
        num_inside.fetch_sub(1);
      }
    });
  }
  for (std::thread& engine : engines) engine.join();
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(num_steps, 2000);
}

// An engine that steps without a pause waits behind one that asked meanwhile.
TEST(StepTurn, GivesTurnsInTheOrderOfAsking) {
  StepTurn turns;
  std::vector<int> order;  // guarded by the turn
  auto first = std::make_unique<StepTurn::Held>(StepTurn::take(&turns));
  std::thread second([&] {
    const StepTurn::Held held = StepTurn::take(&turns);
    order.push_back(2);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the second one waits by now
  std::thread third([&] {
    const StepTurn::Held held = StepTurn::take(&turns);
    order.push_back(3);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  first.reset();
  second.join();
  third.join();
  EXPECT_EQ(order, (std::vector<int>{2, 3}));
}

TEST(StepTurn, AnEngineAloneNeedsNone) {
  const StepTurn::Held one = StepTurn::take(nullptr);
  const StepTurn::Held other = StepTurn::take(nullptr);
}

}  // namespace kvasir::step_turn_test
