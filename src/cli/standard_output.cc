#include "cli/standard_output.h"

#include <cstdio>

namespace kvasir::cli {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int print_document(std::string json, int exit_code) {
  json += '\n';
  print(json);
  return finish_output(exit_code);
}

int finish_output(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return report({ErrorKind::kMachine, "standard output: cannot be written", "stdout"});
}

void say(std::string_view line) {
  const std::string whole = std::string(line) + '\n';  // in one write
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace kvasir::cli
