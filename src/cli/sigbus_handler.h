// Ends the process with a clear line when another program shortens a file that is mapped here.
#pragma once

namespace kvasir::cli {

// From now on, reading a mapped file's bytes that are no longer there ends the process with a line that names
// the file, and kExitBadFile, instead of a SIGBUS. Nothing else can be done where it is read: the bytes are
// gone. Call once, before the first thread.
void install_sigbus_handler();

}  // namespace kvasir::cli
