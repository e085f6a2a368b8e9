// Shows how much of a long prompt is computed.
#pragma once

#include <chrono>
#include <optional>

#include "base/progress_reporter.h"
#include "cli/generation.h"

namespace kvasir::cli {

// On stderr, where that is a terminal, and only after half a second of waiting. Thread safety: none.
class PromptProgress {
 public:
  explicit PromptProgress(bool quiet);

  // Borrows this.
  PromptSink sink();
  // Before anything else is printed.
  void clear();

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::optional<ProgressReporter> reporter_;
};

}  // namespace kvasir::cli
