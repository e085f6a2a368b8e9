// How long a test lets something take.
#pragma once

#include <cstdlib>

namespace kvasir::grammar {

// Milliseconds of processor time. The bar itself where a test asks for it (label slow), on a machine that is quiet and
// of today's speed; else ten times as much, which tells an explosion from a slow machine.
inline double time_bar_ms(double bar_ms) { return std::getenv("KVASIR_TIME_BARS") != nullptr ? bar_ms : 10 * bar_ms; }

}  // namespace kvasir::grammar
