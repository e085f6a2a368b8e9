// How far files are from the model that they were made from, on a text:
//   kvasir_divergence SOURCE TEXT WINDOWS [--fast] FILE...
// --fast: the files, not the source, are run with byte arithmetic. Windows have 512 tokens; the second half of each counts.
// A line of JSON for each file. Exit codes: 0, 1 with the reason.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "eval/divergence.h"
#include "eval/windows.h"
#include "kvasir/engine.h"

namespace {

using namespace kvasir;

template <class T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "divergence: {}\n", result.error().message);
  std::exit(1);
}

std::unique_ptr<Engine> load(const std::string& path, bool fast) {
  EngineConfig config;
  config.fast = fast;
  config.model_path = path;
  config.max_model_len_tokens = 512;
  config.max_num_seqs = 1;
  config.kv_cache_type = KvCacheType::kF32;
  return value_or_exit(Engine::load(config));
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_fast = argc > 4 && std::string(argv[4]) == "--fast";
  const int first = is_fast ? 5 : 4;
  if (argc <= first) {
    fmt::print(stderr, "divergence: SOURCE TEXT WINDOWS [--fast] FILE...\n");
    return 1;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::vector<TokenId>> windows;
  auto exact = [&] {
    const auto engine = load(argv[1], false);
    windows = value_or_exit(eval::cut_windows(*engine->tokenizer(), text, 512, std::atoi(argv[3])));
    auto logits = value_or_exit(eval::LogitsFile::create("/tmp", engine->model_info().vocab_size));
    if (const Status status = eval::record_logits(*engine, windows, logits, {}); !status) value_or_exit<int>(std::unexpected(status.error()));
    return logits;
  }();
  for (int i = first; i < argc; ++i) {
    const auto engine = load(argv[i], is_fast);
    const eval::Divergence found = value_or_exit(eval::measure_divergence(*engine, windows, exact, {}));
    fmt::print("{{\"file\": \"{}\", \"windows\": {}, \"kl\": {:.6f}, \"kl_worst\": {:.6f}, \"top1\": {:.5f}, \"ratio\": {:.5f}}}\n",
               argv[i], found.num_windows, found.kl, found.kl_worst, found.top1, found.ratio);
  }
}
