// How fast an engine answers prompts of a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/benchmark.h"
#include "eval/workload.h"
#include "kvasir/engine.h"

namespace kvasir::cli {

// Greedy answers of at most n_gen tokens, or as many as an item names; test.batch prompts at once. A rate is of all
// generated tokens over the time from the first request to the last token, prompts included. One run warms up; each later
// one must give the same tokens. With replay_accept the answers of the first are guessed. tokens_sha256 is of all answers.
// Blocks. Errors: as measure_speed(). Requires: the engine has no prefix cache.
Result<Speed> measure_workload(Engine& engine, const std::vector<eval::WorkloadItem>& items, const BenchmarkCase& test,
                               std::int32_t repeat, const BenchmarkEvents& events);

}  // namespace kvasir::cli
