// The flags of `kvasir serve` that set the limits of server/limits.h, one for each.
#pragma once

#include <CLI/App.hpp>
#include <array>
#include <cstdint>

#include "kvasir/result.h"
#include "server/limits.h"

namespace kvasir::cli {

struct LimitOptions {
  server::Limits limits;
  std::array<std::int64_t, server::kTimeLimits.size()> seconds = {};  // of each of kTimeLimits
};

// `options` outlives `verb`.
void add_limit_options(CLI::App& verb, LimitOptions& options);

// The limits as the flags set them. Errors: kUsage, when they contradict each other.
Result<server::Limits> chosen_limits(const LimitOptions& options);

}  // namespace kvasir::cli
