// How the terminal sees a transfer of the model store.
#pragma once

#include "base/progress_reporter.h"
#include "cli/interruption.h"
#include "cli/verb.h"
#include "store/progress.h"

namespace kvasir::cli {

// Progress and notes on stderr, and Ctrl-C as the wish to stop. Must outlive the events it hands out.
class TransferView {
 public:
  explicit TransferView(const GlobalOptions& options);

  store::TransferEvents events();
  void note(const std::string& line) { reporter_.note(line); }
  // Takes the bar away, so that other output can follow.
  void finish() { reporter_.clear(); }

 private:
  ProgressReporter reporter_;
  Interruption interruption_;
};

}  // namespace kvasir::cli
