// A model that is asked whether an answer is right.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kvasir/engine.h"
#include "search/sampler.h"

namespace kvasir::search {

// The answer's own model, or another one. Borrows its engine. Thread safety: none.
class Judge {
 public:
  // As Question has it, for the judge's model.
  using Encode = std::function<Result<std::vector<TokenId>>(std::span<const std::string> turns)>;

  Judge(Engine& engine, Encode encode, KeepGoing keep_going)
      : engine_(engine), encode_(std::move(encode)), keep_going_(std::move(keep_going)) {}

  // P(yes) / (P(yes) + P(no)) behind the question, the answer and the question whether it is right; 0.5 where neither is
  // among the likeliest words. Errors: as Sampler::draw.
  Result<double> score(const std::string& question, const std::string& answer);
  // Tokens of all prompts that it read.
  std::int64_t num_tokens() const { return num_tokens_; }

 private:
  Engine& engine_;
  Encode encode_;
  KeepGoing keep_going_;
  std::int64_t num_tokens_ = 0;
};

}  // namespace kvasir::search
