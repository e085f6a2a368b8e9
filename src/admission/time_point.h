// The time, as callers pass it in: this layer has no clock of its own.
#pragma once

#include <chrono>

namespace kvasir::admission {

using TimePoint = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::duration<double, std::milli>;

}  // namespace kvasir::admission
