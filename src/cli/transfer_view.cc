#include "cli/transfer_view.h"

namespace kvasir::cli {

TransferView::TransferView(const GlobalOptions& options)
    : reporter_(ProgressReporter::Config{.quiet = options.quiet, .is_terminal = {}}) {}

store::TransferEvents TransferView::events() {
  store::TransferEvents events;
  events.progress = [this](const store::Progress& progress) {
    reporter_.report_bytes(progress.phase, progress.bytes_done, progress.bytes_total);
    return !interruption_.requested();
  };
  events.note = [this](const std::string& line) { reporter_.note(line); };
  return events;
}

}  // namespace kvasir::cli
