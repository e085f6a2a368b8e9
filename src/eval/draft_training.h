// Makes and checks draft files: guesses that are learned of a model from what it writes itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/run_request.h"
#include "io/draft_file.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

using Prompt = std::vector<TokenId>;

struct DraftTraining {
  std::int64_t num_tokens = 500'000;  // that the model is to write, about
  std::int32_t answer_tokens = 192;   // of an answer, at most
  std::int32_t order = 4;             // tokens of the longest context
  std::uint64_t seed = 1;
};

struct DraftEvents {
  KeepGoing keep_going;
  std::function<void(std::string_view phase, double fraction)> progress;
};

// A question of a user as the prompt of an answer.
using EncodeQuestion = std::function<Result<Prompt>(std::string_view question)>;

// The model writes answers to `prompts` and, where `encode` is given, first questions of its own: what it takes for a
// user's turn. Half of the answers are greedy. Those that repeat themselves are left out. Some prompts are held out; the
// table is measured on their greedy answers. The file has no name and fingerprint yet. Blocks. Errors: as run_requests();
// kUsage where there are too few prompts.
Result<io::DraftFile> train_draft(Engine& engine, std::span<const Prompt> prompts, const EncodeQuestion& encode,
                                  const DraftTraining& training, const DraftEvents& events);

struct DraftCheck {
  std::vector<double> acceptance;  // as the file's
  std::int64_t num_tokens = 0;     // that were guessed

  // Where as many tokens are guessed in each step as acceptance has depths.
  double tokens_per_step() const;
};
// Measures a file anew on greedy answers to `prompts`, of at most answer_tokens. Errors: as run_requests(); kBadFile: it is
// of other tokens than the engine's model.
Result<DraftCheck> check_draft(Engine& engine, const io::DraftFile& file, std::span<const Prompt> prompts,
                               std::int32_t answer_tokens, const DraftEvents& events);

}  // namespace kvasir::eval
