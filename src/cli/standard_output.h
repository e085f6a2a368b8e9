// A command's answer on stdout, and its other messages on stderr.
#pragma once

#include <string>
#include <string_view>

#include "cli/verb.h"

namespace kvasir::cli {

// Writes and flushes, so that a reader sees streamed text at once. A write error shows in finish_output().
void print(std::string_view text);

// Prints a whole JSON document with its final newline, and then as finish_output().
int print_document(std::string json, int exit_code = kExitDone);

// `exit_code`, or kExitMachine with a line on stderr when something printed did not get out (a full disk).
int finish_output(int exit_code = kExitDone);

// One line on stderr. When it cannot be written, as with a closed stderr, the command goes on without it.
void say(std::string_view line);

}  // namespace kvasir::cli
