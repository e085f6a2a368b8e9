// Ends the process with a clear line when another program writes into a model's file while it is mapped here.
#pragma once

#include <string>
#include <thread>

namespace kvasir::cli {

// Looks twice a second at size and time of the files of a model's folder that this process has mapped. A file
// that was written to gives other weights, and so wrong answers without a sign: the process ends with a line
// that names it, and kExitBadFile. A file that another one replaced by its name is still mapped as it was, and
// nothing happens. sigbus_handler.h is for files that became shorter.
class WeightsWatch {
 public:
  // The model is mapped.
  explicit WeightsWatch(const std::string& model_path);

 private:
  std::jthread thread_;  // none when nothing is mapped
};

}  // namespace kvasir::cli
