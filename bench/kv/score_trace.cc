// The attention that each block of a text gets, as a KV policy's memory has it after every 16 tokens: what a forecast of later
// attention can be learned from. Nothing is dropped or made coarser.
//
// Usage: kvasir_score_trace MODEL --file TEXT --out PREFIX [--windows N] [--skip N] [--tokens N] [--threads N]
// Writes for each window PREFIX.<i>.scores.npy, a row of [cells, blocks] for each act, and PREFIX.<i>.blocks.npy, the
// statistic of [cells, blocks] and the token ids. Cells are those of layers without a window. Exit codes: 0, 2 (usage).
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/policy_reader.h"
#include "eval/npy_writer.h"
#include "eval/windows.h"
#include "kv/policy/block_forecast.h"
#include "store/model_store.h"

namespace kvasir {
namespace {

struct Options {
  std::string model, file, out;
  std::int32_t num_windows = 4, num_skipped = 0, num_tokens = 2048;
  int num_threads = 2;
};

// Looks, and does nothing.
class Onlooker final : public kv::KvPolicy {
 public:
  explicit Onlooker(std::int32_t num_blocks) : num_blocks_(static_cast<std::size_t>(num_blocks)) {}
  std::string_view name() const override { return "onlooker"; }
  kv::AttentionMemory memory() const override { return kv::DecayedMass::memory(); }
  bool has_budget() const override { return false; }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>&) const override {
    const auto num_cells = static_cast<std::size_t>(view.num_cells());
    std::vector<float>& row = rows_.emplace_back(num_cells * num_blocks_, 0.0f);
    statistics_.assign(row.size(), 0.0f);
    for (std::size_t cell = 0; cell < num_cells; ++cell) {
      copy(view.scores->scores(static_cast<std::int32_t>(cell)), cell, row);
      copy(view.scores->statistics(static_cast<std::int32_t>(cell)), cell, statistics_);
    }
  }
  const std::vector<std::vector<float>>& rows() const { return rows_; }
  const std::vector<float>& statistics() const { return statistics_; }

 private:
  void copy(std::span<const float> values, std::size_t cell, std::vector<float>& row) const {
    const std::size_t count = std::min(values.size(), num_blocks_);
    std::copy_n(values.begin(), count, row.begin() + static_cast<std::ptrdiff_t>(cell * num_blocks_));
  }

  std::size_t num_blocks_;
  mutable std::vector<std::vector<float>> rows_;
  mutable std::vector<float> statistics_;
};

bool read(std::span<char*> arguments, Options& options) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--")) {
      options.model = name;
      continue;
    }
    if (++i == arguments.size()) return false;
    const std::string value = arguments[i];
    if (name == "--file")
      options.file = value;
    else if (name == "--out")
      options.out = value;
    else if (name == "--windows")
      options.num_windows = std::atoi(value.c_str());
    else if (name == "--skip")
      options.num_skipped = std::atoi(value.c_str());
    else if (name == "--tokens")
      options.num_tokens = std::atoi(value.c_str());
    else if (name == "--threads")
      options.num_threads = std::atoi(value.c_str());
    else
      return false;
  }
  return !options.model.empty() && !options.file.empty() && !options.out.empty() && options.num_tokens >= 64;
}

void write_rows(const std::string& path, const std::vector<std::vector<float>>& rows) {
  auto writer = eval::NpyWriter::create(path, std::ssize(rows.front()));
  if (!writer) std::exit(2);
  for (const std::vector<float>& row : rows) writer->write_row(row);
  if (!writer->close()) std::exit(2);
}

void trace(LoadedModel& loaded, const std::vector<TokenId>& window, const std::string& prefix) {
  const Onlooker onlooker(static_cast<std::int32_t>(window.size()) / kv::kTokensPerBlock);
  if (!read_with_policy(loaded, window, onlooker, {})) std::exit(2);
  write_rows(prefix + ".scores.npy", onlooker.rows());
  std::vector<float> tokens(onlooker.statistics().size(), 0.0f);
  for (std::size_t i = 0; i < std::min(tokens.size(), window.size()); ++i) tokens[i] = static_cast<float>(window[i]);
  write_rows(prefix + ".blocks.npy", {onlooker.statistics(), tokens});
}

int run(const Options& options) {
  const auto path = store::resolve_model(options.model);
  if (!path) return 2;
  EngineConfig config;
  config.model_path = *path;
  config.num_threads = options.num_threads;
  config.max_model_len_tokens = options.num_tokens + 64;
  config.kv_cache_tokens = options.num_tokens + 64;
  config.max_num_seqs = 1;
  auto loaded = load_model_file(config, {});
  if (!loaded || loaded->tokenizer == nullptr) return 2;
  std::ifstream file(options.file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto windows = eval::cut_windows(*loaded->tokenizer, text, options.num_tokens, options.num_skipped + options.num_windows);
  if (!windows) return 2;
  for (std::size_t i = static_cast<std::size_t>(options.num_skipped); i < windows->size(); ++i) {
    trace(*loaded, (*windows)[i], fmt::format("{}.{}", options.out, i));
    fmt::print(stderr, "window {} of {}\n", i + 1, windows->size());
  }
  return 0;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) {
  kvasir::Options options;
  if (!kvasir::read({argv, static_cast<std::size_t>(argc)}, options)) {
    fmt::print(stderr, "usage: kvasir_score_trace MODEL --file TEXT --out PREFIX [--windows N] [--skip N] [--tokens N]\n");
    return 2;
  }
  return kvasir::run(options);
}
