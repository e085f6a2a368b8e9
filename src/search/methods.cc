#include "search/methods.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "search/ballot.h"
#include "text/tokenizer.h"

namespace kvasir::search {
namespace {

constexpr std::int32_t kDrawnAtOnce = 4;  // after which a vote is looked at

Result<double> score_of(const MethodOptions& options, const Sample& sample) {
  return options.scorer ? options.scorer(sample) : sample.mean_logprob();
}

// The first one of equals.
std::vector<Sample>::iterator best_in(std::vector<Sample>& samples) { return std::ranges::max_element(samples, {}, &Sample::score); }

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
  KVASIR_TRY(std::vector<Sample> samples,
             sampler.draw(prompt, {.count = options.budget, .temperature = options.temperature, .max_tokens = options.max_tokens, .seed = options.seed}));
  for (Sample& sample : samples) {
    KVASIR_TRY(sample.score, score_of(options, sample));
  }
  return answer_of(*best_in(samples), sampler.num_tokens() - before, options.budget);
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

Result<SearchAnswer> beam(Sampler& sampler, const Question& question, const MethodOptions& options) {
  const std::int64_t before = sampler.num_tokens();
  KVASIR_TRY(const std::vector<TokenId> prompt, prompt_of(question));
  KVASIR_TRY(const std::vector<Sample> samples,
             sampler.draw(prompt, {.max_tokens = options.max_tokens, .num_beams = options.budget, .length_penalty = options.length_penalty}));
  return answer_of(samples.front(), sampler.num_tokens() - before, options.budget);
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
    const auto best = best_in(open);
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
      KVASIR_TRY(child.score, score_of(options, child));
      const bool goes_on = step.is_finished && step.text.ends_with('\n');
      (goes_on ? open : finished).push_back(std::move(child));
    }
  }
  std::vector<Sample>& candidates = finished.empty() ? open : finished;
  return answer_of(*best_in(candidates), sampler.num_tokens() - before, num_drawn);
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
