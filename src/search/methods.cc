#include "search/methods.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "search/ballot.h"
#include "text/tokenizer.h"

namespace kvasir::search {
namespace {

constexpr std::int32_t kDrawnAtOnce = 4;  // after which a vote is looked at

double score_of(const MethodOptions& options, const Sample& sample) {
  return options.scorer ? options.scorer(sample) : sample.mean_logprob();
}

Result<std::vector<TokenId>> prompt_of(const Question& question) {
  return question.encode(std::span(&question.text, 1));
}

SearchAnswer answer_of(const Sample& sample, std::int64_t num_search_tokens, std::int32_t num_branches) {
  return {.text = sample.text,
          .num_tokens = std::ssize(sample.token_ids),
          .num_search_tokens = num_search_tokens,
          .num_branches = num_branches};
}

}  // namespace

Result<SearchAnswer> greedy(Sampler& sampler, const Question& question, const MethodOptions& options) {
  const std::int64_t before = sampler.num_tokens();
  KVASIR_TRY(const std::vector<TokenId> prompt, prompt_of(question));
  KVASIR_TRY(const std::vector<Sample> samples, sampler.draw(prompt, {.max_tokens = options.max_tokens}));
  return answer_of(samples.front(), sampler.num_tokens() - before, 1);
}

Result<SearchAnswer> best_of(Sampler& sampler, const Question& question, const MethodOptions& options) {
  const std::int64_t before = sampler.num_tokens();
  KVASIR_TRY(const std::vector<TokenId> prompt, prompt_of(question));
  KVASIR_TRY(const std::vector<Sample> samples,
             sampler.draw(prompt, {.count = options.budget, .temperature = options.temperature, .max_tokens = options.max_tokens, .seed = options.seed}));
  std::size_t best = 0;
  std::vector<double> scores;
  for (const Sample& sample : samples) scores.push_back(score_of(options, sample));
  for (std::size_t i = 1; i < scores.size(); ++i) best = scores[i] > scores[best] ? i : best;
  return answer_of(samples[best], sampler.num_tokens() - before, options.budget);
}

Result<SearchAnswer> vote(Sampler& sampler, const Question& question, const MethodOptions& options) {
  const std::int64_t before = sampler.num_tokens();
  KVASIR_TRY(const std::vector<TokenId> prompt, prompt_of(question));
  Ballot ballot;
  std::map<std::string, Sample> first_with;  // each answer's first text
  Sample first;
  const auto count = [&](std::vector<Sample> samples) {
    for (Sample& sample : samples) {
      if (ballot.num_votes() == 0) first = sample;
      const auto answer = extract_answer(options.form, sample.text);
      if (!answer) {
        ballot.add_invalid();
        continue;
      }
      ballot.add(*answer);
      first_with.try_emplace(*answer, std::move(sample));
    }
  };
  KVASIR_TRY(std::vector<Sample> likeliest, sampler.draw(prompt, {.max_tokens = options.max_tokens}));
  count(std::move(likeliest));
  std::uint64_t seed = options.seed;
  while (true) {
    const auto num_left = static_cast<std::int32_t>(static_cast<std::size_t>(options.budget) - std::min<std::size_t>(ballot.num_votes(), static_cast<std::size_t>(options.budget)));
    if (num_left == 0 || ballot.is_decided(static_cast<std::size_t>(num_left))) break;
    KVASIR_TRY(std::vector<Sample> samples,
               sampler.draw(prompt, {.count = std::min(kDrawnAtOnce, num_left), .temperature = options.temperature, .max_tokens = options.max_tokens, .seed = seed++}));
    count(std::move(samples));
  }
  const Sample& chosen = ballot.leader().empty() ? first : first_with.at(ballot.leader());
  return answer_of(chosen, sampler.num_tokens() - before, static_cast<std::int32_t>(ballot.num_votes()));
}

namespace {

struct Beam {
  std::vector<TokenId> token_ids;
  std::string text;
  double logprob = 0.0;
};

double beam_score(const Beam& beam, double length_penalty) {
  return beam.logprob / std::pow(static_cast<double>(std::max<std::size_t>(1, beam.token_ids.size())), length_penalty);
}

class BeamSearch {
 public:
  BeamSearch(Sampler& sampler, const MethodOptions& options, std::vector<TokenId> prompt)
      : sampler_(sampler), options_(options), prompt_(std::move(prompt)), width_(static_cast<std::size_t>(options.budget)) {}

  Result<Beam> run() {
    std::vector<Beam> open = {{}};
    for (std::int32_t step = 0; step < options_.max_tokens && !open.empty(); ++step) {
      KVASIR_TRY(std::vector<Beam> candidates, expand(open));
      keep_best(std::move(candidates), open);
      if (finished_.size() >= width_ && !can_win(open)) break;
    }
    for (Beam& beam : open) finish(std::move(beam));
    return finished_.front();
  }

 private:
  // Of each beam the likeliest continuations, twice as many as there are beams.
  Result<std::vector<Beam>> expand(const std::vector<Beam>& open) {
    std::vector<Beam> candidates;
    for (const Beam& beam : open) {
      std::vector<TokenId> tokens = prompt_;
      tokens.insert(tokens.end(), beam.token_ids.begin(), beam.token_ids.end());
      KVASIR_TRY(const std::vector<Sample> samples, sampler_.draw(tokens, {.max_tokens = 1, .num_next = static_cast<std::int32_t>(2 * width_)}));
      for (const TokenLogprob& next : samples.front().next) {
        Beam longer = beam;
        longer.token_ids.push_back(next.token);
        longer.logprob += next.logprob;
        candidates.push_back(std::move(longer));
      }
    }
    std::ranges::stable_sort(candidates, std::greater(), &Beam::logprob);
    return candidates;
  }

  void keep_best(std::vector<Beam> candidates, std::vector<Beam>& open) {
    const text::Tokenizer& tokenizer = *sampler_.engine().tokenizer();
    open.clear();
    std::size_t num_looked_at = 0;
    for (Beam& candidate : candidates) {
      if (open.size() == width_ || num_looked_at++ == 2 * width_) break;
      if (tokenizer.vocab().is_end_of_generation(candidate.token_ids.back())) {
        finish(std::move(candidate));
      } else {
        open.push_back(std::move(candidate));
      }
    }
  }

  // The best first; no more than there are beams.
  void finish(Beam beam) {
    finished_.push_back(std::move(beam));
    std::ranges::stable_sort(finished_, std::greater(), [&](const Beam& each) { return beam_score(each, options_.length_penalty); });
    if (finished_.size() > width_) finished_.pop_back();
  }

  // Whether an open beam may still be better than the worst that is kept.
  bool can_win(const std::vector<Beam>& open) const {
    if (open.empty()) return false;
    const double penalty = options_.length_penalty;
    const auto length = penalty > 0.0 ? static_cast<double>(options_.max_tokens) : static_cast<double>(open.front().token_ids.size());
    return open.front().logprob / std::pow(length, penalty) > beam_score(finished_.back(), penalty);
  }

  Sampler& sampler_;
  const MethodOptions& options_;
  const std::vector<TokenId> prompt_;
  const std::size_t width_;
  std::vector<Beam> finished_;
};

}  // namespace

Result<SearchAnswer> beam(Sampler& sampler, const Question& question, const MethodOptions& options) {
  const std::int64_t before = sampler.num_tokens();
  KVASIR_TRY(std::vector<TokenId> prompt, prompt_of(question));
  KVASIR_TRY(const Beam best, BeamSearch(sampler, options, std::move(prompt)).run());
  return SearchAnswer{.text = sampler.engine().tokenizer()->decode(best.token_ids),
                      .num_tokens = std::ssize(best.token_ids),
                      .num_search_tokens = sampler.num_tokens() - before,
                      .num_branches = options.budget};
}

Result<SearchAnswer> revise(Sampler& sampler, const Question& question, const MethodOptions& options) {
  constexpr const char* kCritique = "Is this answer correct? Check each step. Say \"no mistakes\" if there are none, else say what is wrong.";
  constexpr const char* kAgain = "Answer the first question again, without these mistakes.";
  const std::int64_t before = sampler.num_tokens();
  std::vector<std::string> turns = {question.text};
  Sample answer;
  std::int32_t num_turns = 0;
  const auto say = [&](std::string turn) -> Result<Sample> {
    if (!turn.empty()) turns.push_back(std::move(turn));
    KVASIR_TRY(const std::vector<TokenId> prompt, question.encode(turns));
    KVASIR_TRY(std::vector<Sample> samples, sampler.draw(prompt, {.max_tokens = options.max_tokens}));
    turns.push_back(samples.front().text);
    ++num_turns;
    return std::move(samples.front());
  };
  KVASIR_TRY(answer, say(""));
  for (std::int32_t round = 1; round < options.budget; ++round) {
    KVASIR_TRY(const Sample critique, say(kCritique));
    if (extract_answer(AnswerForm::kText, critique.text).value_or("").find("no mistakes") != std::string::npos) break;
    KVASIR_TRY(answer, say(kAgain));
  }
  return answer_of(answer, sampler.num_tokens() - before, num_turns);
}

Result<SearchAnswer> tree(Sampler& sampler, const Question& question, const MethodOptions& options) {
  constexpr std::int32_t kWays = 2;
  const std::int64_t before = sampler.num_tokens();
  KVASIR_TRY(const std::vector<TokenId> prompt, prompt_of(question));
  std::vector<Sample> open = {{}}, finished;
  std::int32_t num_drawn = 0;
  std::uint64_t seed = options.seed;
  while (!open.empty() && num_drawn < options.budget * kWays) {
    // The best of all that are open, whatever was taken up last.
    const auto best = std::ranges::max_element(open, {}, [&](const Sample& each) { return each.token_ids.empty() ? 0.0 : score_of(options, each); });
    Sample parent = std::move(*best);
    open.erase(best);
    std::vector<TokenId> tokens = prompt;
    tokens.insert(tokens.end(), parent.token_ids.begin(), parent.token_ids.end());
    const auto left = options.max_tokens - static_cast<std::int32_t>(parent.token_ids.size());
    if (left <= 0) {
      finished.push_back(std::move(parent));
      continue;
    }
    KVASIR_TRY(const std::vector<Sample> steps,
               sampler.draw(tokens, {.count = kWays, .temperature = options.temperature, .max_tokens = left, .seed = seed++, .stop = {"\n"}}));
    num_drawn += kWays;
    for (const Sample& step : steps) {
      Sample child = parent;
      child.token_ids.insert(child.token_ids.end(), step.token_ids.begin(), step.token_ids.end());
      child.text += step.text;
      child.logprob += step.logprob;
      const bool goes_on = step.is_finished && step.text.ends_with('\n');
      (goes_on ? open : finished).push_back(std::move(child));
    }
  }
  std::vector<Sample>& candidates = finished.empty() ? open : finished;
  const auto best = std::ranges::max_element(candidates, {}, [&](const Sample& each) { return score_of(options, each); });
  return answer_of(*best, sampler.num_tokens() - before, num_drawn);
}

namespace {

constexpr std::pair<const char*, Method> kMethods[] = {{"greedy", greedy}, {"best_of", best_of}, {"vote", vote},
                                                       {"beam", beam},     {"revise", revise},   {"tree", tree}};

}  // namespace

Method method_named(std::string_view name) {
  const auto* const found = std::ranges::find(kMethods, name, [](const auto& each) { return std::string_view(each.first); });
  return found == std::end(kMethods) ? nullptr : found->second;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& [name, method] : kMethods) names.emplace_back(name);
  return names;
}

}  // namespace kvasir::search
