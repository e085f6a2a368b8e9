// Runs another program, without a shell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::store {

struct ChildExit {
  int code = 0;             // its exit code; 128 + the signal that ended it
  std::string stderr_tail;  // the last few KiB it wrote there
};

// Runs argv[0] (found through PATH) with no input and its standard output dropped, in this environment
// changed by `environment` ("NAME=value" each), as its own process group. `keep_running` is called about ten
// times a second; false ends the whole group (SIGTERM, after five seconds SIGKILL) and the result is
// kCancelled. Errors: kNotFound when there is no such program, kMachine when it cannot be started.
Result<ChildExit> run_child(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                            const std::function<bool()>& keep_running);

}  // namespace kvasir::store
