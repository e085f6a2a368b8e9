// How far one model's predictions are from another's with the same tokens.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

// Logits of windows on the disk, where a file of its own without a name has them. Thread safety: none.
class LogitsFile {
 public:
  // In `folder`. Errors: kMachine.
  static Result<LogitsFile> create(const std::string& folder, std::int32_t vocab_size);

  Status write(std::int64_t row, std::span<const float> logits);
  Status read(std::int64_t row, std::span<float> logits) const;
  std::int32_t vocab_size() const { return vocab_size_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::int32_t vocab_size_ = 0;
};

struct Divergence {
  std::size_t num_windows = 0;
  std::int64_t num_positions = 0;
  double kl = 0.0;        // of all positions, nats: from the exact model to the other
  double kl_worst = 0.0;  // mean of the worst window
  double top1 = 0.0;      // share of positions whose likeliest token is the same
  double ratio = 0.0;     // of perplexities, the other's over the exact one's
};

// The token that the model's own text begins with: BOS, or what ends a text.
TokenId opening_of(const Engine& engine);

// The model's own text: so many windows at temperature 1, seeded, behind `opening`. Errors: as Engine::submit,
// kCancelled.
Result<std::vector<std::vector<TokenId>>> sample_windows(Engine& engine, TokenId opening,
                                                         std::int32_t num_windows, std::int32_t window_tokens,
                                                         const KeepGoing& keep_going);

// Keeps the logits of the second half of each window. Errors: as above, kMachine.
Status record_logits(Engine& engine, std::span<const std::vector<TokenId>> windows, LogitsFile& file,
                     const KeepGoing& keep_going);

// Compares the logits of the second halves with those that record_logits() kept of the exact model.
Result<Divergence> measure_divergence(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                      const LogitsFile& exact, const KeepGoing& keep_going);

}  // namespace kvasir::eval
