// Waiting for what other threads do.
#pragma once

#include <chrono>
#include <thread>

namespace kvasir::server {

// Whether it comes true within 5 seconds.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace kvasir::server
