#include "cli/verb.h"

#include <cstdio>
#include <utility>

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

void on_chosen(CLI::App& verb, Context& context, std::function<Result<int>()> action) {
  verb.callback([&context, action = std::move(action)] {
    context.action = [action] {
      const auto exit_code = action();
      return exit_code ? *exit_code : report(exit_code.error());
    };
  });
}

}  // namespace kvasir::cli
