// Prints the greedy tokens that follow a text: kvasir_greedy_tokens MODEL ISA NUM_TOKENS TEXT, with "best" for the
// best instruction set of this host. Two architectures are compared by it (scripts/cross_build_arm64.py).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "generate.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: kvasir_greedy_tokens MODEL ISA NUM_TOKENS TEXT\n", stderr);
    return 2;
  }
  const std::string isa = argv[2];
  const auto engine = kvasir::Engine::load({.model_path = argv[1],
                                            .num_threads = 1,
                                            .max_model_len_tokens = 512,
                                            .max_num_seqs = 1,
                                            .isa = isa == "best" ? std::string() : isa});
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 3;
  }
  const auto prompt = (*engine)->encode(argv[4]);
  if (!prompt) {
    std::fprintf(stderr, "%s\n", prompt.error().message.c_str());
    return 3;
  }
  const auto answers = kvasir::testing::generate(
      **engine, {kvasir::testing::greedy_request(*prompt, std::atoi(argv[3]))});
  if (!answers[0].error.empty()) {
    std::fprintf(stderr, "%s\n", answers[0].error.c_str());
    return 4;
  }
  for (const kvasir::TokenId each : answers[0].token_ids) std::printf("%d\n", static_cast<int>(each));
}
