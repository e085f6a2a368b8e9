// How long a test lets something take.
#pragma once

#include <cstdlib>

namespace kvasir::grammar {

// Milliseconds of processor time. The bar itself in the test grammar.time_bars, beside which no other runs; in the same
// tests one by one ten times as much, since they share the machine.
inline double time_bar_ms(double bar_ms) { return std::getenv("KVASIR_TIME_BARS") != nullptr ? bar_ms : 10 * bar_ms; }

}  // namespace kvasir::grammar
