#include "cli/prompt_progress.h"

#include <unistd.h>

namespace kvasir::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

PromptProgress::PromptProgress(bool quiet) {
  if (!quiet && ::isatty(STDERR_FILENO) != 0) reporter_.emplace(ProgressReporter::Config{});
}

PromptSink PromptProgress::sink() {
  if (!reporter_) return {};
  return [this](std::int32_t computed_tokens, std::int32_t prompt_tokens) {
    if (std::chrono::steady_clock::now() - begin_ < kPatience || prompt_tokens == 0) return;
    reporter_->report_fraction("reading", static_cast<double>(computed_tokens) / prompt_tokens);
  };
}

void PromptProgress::clear() {
  if (reporter_) reporter_->clear();
}

}  // namespace kvasir::cli
