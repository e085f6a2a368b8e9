// Answers of the engine, as searches draw them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::search {

// Asked while something runs; false ends it with kCancelled. Empty: never.
using KeepGoing = std::function<bool()>;

struct Sample {
  std::vector<TokenId> token_ids;
  std::string text;
  double logprob = 0.0;  // sum, natural
  bool is_finished = false;  // it ended by itself, and not at its limit
  double score = 0.0;        // as a scorer has it
  std::vector<TokenLogprob> first_likeliest;  // DrawOptions::num_likeliest tokens in the place of the first one

  double mean_logprob() const { return token_ids.empty() ? 0.0 : logprob / static_cast<double>(token_ids.size()); }
};

struct DrawOptions {
  std::int32_t count = 1;
  float temperature = 0.0f;
  std::int32_t max_tokens = 256;
  std::uint64_t seed = 0;
  std::vector<std::string> stop = {};
  std::int32_t num_beams = 0;  // above 0: the best answers of a beam search of that width
  float length_penalty = 1.0f;
  std::int32_t num_likeliest = 0;
};

// Counts what it draws. Borrows the engine. Thread safety: none.
class Sampler {
 public:
  Sampler(Engine& engine, KeepGoing keep_going) : engine_(engine), keep_going_(std::move(keep_going)) {}

  // So many answers to the prompt; they share its KV. Errors: those of Engine::submit, the request's own, kCancelled.
  Result<std::vector<Sample>> draw(const std::vector<TokenId>& prompt, const DrawOptions& options);
  // Tokens that were drawn so far.
  std::int64_t num_tokens() const { return num_tokens_; }
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
  KeepGoing keep_going_;
  std::int64_t num_tokens_ = 0;
};

}  // namespace kvasir::search
