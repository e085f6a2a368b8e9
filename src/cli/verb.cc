#include "cli/verb.h"

#include <cstdio>

namespace kvasir::cli {

int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kBadFile:
    case ErrorKind::kNotFound:
      return kExitBadFile;
    case ErrorKind::kUnmet:
      return kExitUnmet;
    case ErrorKind::kMachine:
    case ErrorKind::kUnavailable:
      return kExitMachine;
    case ErrorKind::kCancelled:
      return kExitInterrupted;
    case ErrorKind::kInternal:
      return kExitNo;
  }
  return kExitNo;
}

int report(const Error& error) {
  std::fprintf(stderr, "kvasir: %s\n", error.message.c_str());
  return exit_code_of(error.kind);
}

}  // namespace kvasir::cli
