#include "search/judge.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "text/tokenizer.h"

namespace kvasir::search {
namespace {

constexpr const char* kIsItRight = "Is this answer right? Say yes or no.";
constexpr std::int32_t kNumWords = 20;

// "yes" of " Yes".
std::string word_of(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isalpha(c) == 0; });
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Result<double> Judge::score(const std::string& question, const std::string& answer) {
  const std::vector<std::string> turns = {question, answer, kIsItRight};
  KVASIR_TRY(const std::vector<TokenId> prompt, encode_(turns));
  num_tokens_ += std::ssize(prompt);
  Sampler sampler(engine_, keep_going_);
  KVASIR_TRY(const std::vector<Sample> samples, sampler.draw(prompt, {.max_tokens = 1, .num_likeliest = kNumWords}));
  double yes = 0.0, no = 0.0;
  for (const TokenLogprob& token : samples.front().first_likeliest) {
    const std::string word = word_of(std::string(engine_.tokenizer()->decode_token(token.token)));
    if (word == "yes") yes += std::exp(token.logprob);
    if (word == "no") no += std::exp(token.logprob);
  }
  return yes + no > 0.0 ? yes / (yes + no) : 0.5;
}

}  // namespace kvasir::search
