// Ends the process with a clear line when a library gives up for want of memory.
#pragma once

namespace kvasir::cli {

// Takes room for the main thread's stack, whose growth under `ulimit -v` would fail with a SIGSEGV. From now on an
// abort, a segmentation fault or an exception that nobody catches ends the process with a line and kExitMachine,
// where no memory is left: gRPC aborts then. With memory left such a fault stays what it is. False: the process may
// not have enough addresses for anything. Call once, before the first thread.
[[nodiscard]] bool prepare_for_little_memory();

}  // namespace kvasir::cli
