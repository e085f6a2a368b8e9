// Guesses of a real draft model that are checked by residual sampling leave texts their distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/draft_model.h"
#include "engine/guide_compiler.h"
#include "engine/guided_choice.h"
#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sampling/chi_square.h"
#include "sched/scheduler.h"

namespace kvasir::residual_test {
namespace {

using sampling::AllowedTokens;
using sampling::Candidate;
using sampling::Distribution;

constexpr std::array<TokenId, 4> kAllowed = {7, 20, 41, 66};  // few, so that each text comes often
constexpr std::int32_t kGuesses = 3;
constexpr std::int32_t kTokens = kGuesses + 2;  // the first has no guess, the last comes behind a whole draft

Result<LoadedModel> load(const std::string& model) {
  EngineConfig config;
  config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + model + ".gguf";
  config.num_threads = 1;
  config.kv_cache_tokens = 2048;
  return load_model_file(config, {});
}

std::array<std::uint64_t, 2> words_of(std::span<const TokenId> tokens) {
  std::array<std::uint64_t, 2> words{};
  for (const TokenId token : tokens) words.at(static_cast<std::size_t>(token) / 64) |= std::uint64_t{1} << (token % 64);
  return words;
}

std::size_t cell_of(std::span<const TokenId> text) {
  std::size_t cell = 0;
  for (const TokenId token : text) {
    cell = cell * kAllowed.size() + static_cast<std::size_t>(std::ranges::find(kAllowed, token) - kAllowed.begin());
  }
  return cell;
}

std::size_t num_texts_of(std::size_t num_tokens) {
  std::size_t count = 1;
  for (std::size_t i = 0; i < num_tokens; ++i) count *= kAllowed.size();
  return count;
}

// A text that is being made.
struct Text {
  std::uint64_t number = 0;
  std::vector<TokenId> tokens = {};
  std::optional<GuidedChoice> guide = {};

  // Whether the token ends the text.
  bool append(TokenId token) {
    tokens.push_back(token);
    if (guide) guide->push(token, 1);
    return guide && guide->must_end();
  }
};

// Makes the check of a guess wrong through what it is told of the guess.
using Plant = void (*)(Distribution& drawn_from, TokenId guess);
void plant_nothing(Distribution&, TokenId) {}

struct Made {
  std::map<std::vector<TokenId>, int> counts;  // by text
  int num_guesses = 0, num_right = 0;
};

// Texts of a guide; null: of kTokens of kAllowed.
struct Form {
  const char* regex = nullptr;
  bool has_end_token = true;  // or else they end where nothing may follow
};

// The real scheduler, model and draft model, with kGuesses guesses a step.
class Pair {
 public:
  Pair(const std::string& model, const std::string& draft_model, SamplingParams params, Form form = {})
      : params_(std::move(params)), form_(form), loaded_(load(model)), draft_(load(draft_model)) {
    EXPECT_TRUE(loaded_);
    EXPECT_TRUE(draft_);
    if (form.has_end_token) stop_tokens_ = loaded_->tokenizer->vocab().end_of_generation();
    guides_ = std::make_unique<GuideCompiler>(loaded_->tokenizer.get(), std::int64_t{64} << 20);
  }

  // The probabilities of each text, as the model gives them.
  std::vector<double> probabilities() {
    std::vector<double> of_texts = {1.0};
    for (std::size_t num_before = 0; num_before < kTokens; ++num_before) {
      std::vector<double> longer;
      const std::vector<Distribution> next = distributions_behind(num_before);
      for (std::size_t text = 0; text < of_texts.size(); ++text) {
        for (const TokenId token : kAllowed) longer.push_back(of_texts[text] * next[text].probability_of(token));
      }
      of_texts = std::move(longer);
    }
    return of_texts;
  }

  // Null: nothing is guessed.
  Made make(int num_texts, Plant plant) {
    DraftModel draft(*std::move(draft_));
    EXPECT_TRUE(draft.set_target(loaded_->tokenizer.get(), loaded_->info.vocab_size));
    kv::KvCacheManager kv(loaded_->kv);
    sched::Scheduler scheduler({.max_num_seqs = 8, .max_num_batched_tokens = 128}, kv);
    runtime::ModelRunner runner = runner_of(kv);
    Made made;
    asked_.clear();
    for (int num_begun = 0; num_begun < num_texts || scheduler.has_unfinished();) {
      for (; num_begun < num_texts && texts_.size() < 8; ++num_begun) {
        begin(scheduler, static_cast<std::uint64_t>(num_begun + (plant == nullptr ? num_texts : 0)));
      }
      const sched::SchedulerOutput& output = scheduler.schedule({});
      std::vector<runtime::SamplingTask> tasks;
      for (const sched::ScheduledSequence& sequence : output.sequences) {
        made.num_guesses += sequence.num_draft_tokens();
        tasks.push_back({.params = &params_,
                         .seed = texts_.at(sequence.id).number,
                         .allowed = AllowedTokens::of(all_),
                         .guesses_drawn_from = drawn_from(sequence)});
        std::optional<GuidedChoice>& guide = texts_.at(sequence.id).guide;
        if (!guide) continue;
        const auto allowed = guide->allowed_at_each(sequence.draft_token_ids);
        tasks.back().allowed = allowed.front();
        tasks.back().allowed_at_guesses = allowed.subspan(1);
      }
      for (const runtime::SequenceResult& result : runner.run(output, tasks)) {
        EXPECT_FALSE(result.error) << result.error->message;
      }
      take(scheduler, scheduler.update(runner.sampled(), {}), draft, made);
      if (plant != nullptr) guess(scheduler, draft, plant);
    }
    return made;
  }

 private:
  runtime::ModelRunner runner_of(kv::KvCacheManager& kv) {
    return {*loaded_->model, *loaded_->backend, loaded_->kv_views(kv.cells()),
            loaded_->prefill_only_memory(kv.cells(), kv.prefill_only().group()), loaded_->max_logit_rows};
  }

  static sched::SequenceRequest request(std::int32_t max_tokens) {
    sched::SequenceRequest request;
    request.prompt_token_ids = {5, 7, 30, 12, 41};
    request.stop.max_tokens = max_tokens;
    return request;
  }

  void begin(sched::Scheduler& scheduler, std::uint64_t number) {
    sched::SequenceRequest asked = request(form_.regex == nullptr ? kTokens : 2 * kTokens);
    asked.stop.eos_token_ids = form_.regex == nullptr ? std::vector<TokenId>() : stop_tokens_;
    Text& text = texts_[*scheduler.add(std::move(asked), {})];
    text.number = number;
    if (form_.regex == nullptr) return;
    auto guide = guides_->compile({.kind = Guide::Kind::kRegex, .text = form_.regex}, "");
    ASSERT_TRUE(guide) << guide.error().message;
    text.guide.emplace(*guide, "guide", stop_tokens_);
  }

  // The distribution behind each text of so many tokens, which are forced one by one.
  std::vector<Distribution> distributions_behind(std::size_t num_before) {
    std::vector<Distribution> next(num_texts_of(num_before));
    kv::KvCacheManager kv(loaded_->kv);
    sched::Scheduler scheduler({.max_num_seqs = 1, .max_num_batched_tokens = 128}, kv);
    runtime::ModelRunner runner = runner_of(kv);
    for (std::size_t text = 0; text < next.size(); ++text) {
      static_cast<void>(scheduler.add(request(static_cast<std::int32_t>(num_before) + 1), {}));
      for (std::size_t i = 0; i <= num_before; ++i) {
        const sched::SchedulerOutput& output = scheduler.schedule({});
        const std::array only = {kAllowed.at(text / num_texts_of(num_before - std::min(i + 1, num_before)) % kAllowed.size())};
        const std::array<std::uint64_t, 2> words = i < num_before ? words_of(only) : all_;
        const runtime::SamplingTask task = {.params = &params_,
                                            .allowed = AllowedTokens::of(words),
                                            .guess_distribution = i < num_before ? nullptr : &next[text]};
        static_cast<void>(runner.run(output, {&task, 1}));
        static_cast<void>(scheduler.update(runner.sampled(), {}));
      }
      EXPECT_FALSE(scheduler.has_unfinished());
    }
    return next;
  }

  std::span<const Distribution> drawn_from(const sched::ScheduledSequence& sequence) const {
    const auto found = std::ranges::find(asked_, sequence.id, &DraftModel::Asked::id);
    return sequence.draft_token_ids.empty() ? std::span<const Distribution>() : std::span(found->drawn_from);
  }

  void take(sched::Scheduler& scheduler, std::span<const sched::SequenceUpdate> updates, DraftModel& draft,
            Made& made) {
    asked_.clear();
    for (const sched::SequenceUpdate& update : updates) {
      Text& text = texts_.at(update.id);
      bool has_ended = false;
      for (std::size_t i = 0; i < update.tokens.size() && !has_ended; ++i) {
        has_ended = text.append(update.tokens[i].token);
      }
      made.num_right += static_cast<int>(update.tokens.size()) - 1;
      if (has_ended || update.finish_reason) {
        scheduler.finish(update.id);
        ++made.counts[text.tokens];
        draft.end(update.id);
        texts_.erase(update.id);
        continue;
      }
      asked_.push_back({.id = update.id,
                        .tokens = scheduler.sequences().at(update.id).token_ids,
                        .num_prompt_tokens = 5,
                        .params = &params_,
                        .seed = text.number,
                        .stop_tokens = stop_tokens_,
                        .num_guesses = kGuesses,
                        .is_residual = true,
                        .allowed_behind = [this, &text](std::span<const TokenId> guesses) {
                          return text.guide ? text.guide->allowed_behind(guesses) : AllowedTokens::of(all_);
                        }});
    }
  }

  void guess(sched::Scheduler& scheduler, DraftModel& draft, Plant plant) {
    draft.guess(asked_);
    for (DraftModel::Asked& asked : asked_) {
      EXPECT_TRUE(form_.regex != nullptr || asked.guesses.size() == kGuesses);
      for (std::size_t i = 0; i < asked.guesses.size(); ++i) plant(asked.drawn_from[i], asked.guesses[i]);
      scheduler.set_draft(asked.id, asked.guesses);
    }
  }

  SamplingParams params_;
  const Form form_;
  const std::array<std::uint64_t, 2> all_ = words_of(kAllowed);
  Result<LoadedModel> loaded_, draft_;
  std::vector<TokenId> stop_tokens_;
  std::unique_ptr<GuideCompiler> guides_;
  std::map<SequenceId, Text> texts_;
  std::vector<DraftModel::Asked> asked_;
};

SamplingParams params() {
  SamplingParams params;
  params.temperature = 0.8f;
  params.repetition_penalty = 1.2f;
  params.frequency_penalty = 0.3f;
  params.logit_bias = {{20, 0.7f}, {66, -0.4f}};
  params.top_p = 0.97f;
  return params;
}

struct Outcome {
  double deviation = 0.0;
  Made made;
};

Outcome outcome_of(const std::string& model, const std::string& draft_model, int num_texts, Plant plant = plant_nothing) {
  Pair pair(model, draft_model, params());
  const std::vector<double> probabilities = pair.probabilities();
  Outcome outcome{.made = pair.make(num_texts, plant)};
  std::vector<int> counts(probabilities.size());
  for (const auto& [text, count] : outcome.made.counts) counts.at(cell_of(text)) = count;
  outcome.deviation = sampling::chi_square_deviation(counts, probabilities, num_texts);
  return outcome;
}

// As if the guess had hardly been possible: it always counts.
void plant_accept_always(Distribution& drawn_from, TokenId guess) {
  drawn_from.assign(std::array{Candidate{.weight = 1e-20f, .token = guess}, Candidate{.weight = 1.0f, .token = 99}});
}

// As if it had been drawn without parameters and mask.
void plant_unfiltered(Distribution& drawn_from, TokenId) {
  std::vector<Candidate> candidates;
  for (TokenId token = 0; token < 100; ++token) candidates.push_back({.weight = 1.0f, .token = token});
  drawn_from.assign(candidates);
}

// As if all else had not been possible: the token in its place is drawn from p, without the guess.
void plant_no_residual(Distribution& drawn_from, TokenId guess) {
  const auto share = static_cast<float>(drawn_from.probability_of(guess));
  drawn_from.assign(std::array{Candidate{.weight = share, .token = guess}, Candidate{.weight = 1.0f - share, .token = 99}});
}

const std::vector<std::pair<std::string, std::string>>& pairs() {
  static const std::vector<std::pair<std::string, std::string>> pairs = {{"llama-f32", "qwen3moe-q4_0"},
                                                                         {"gemma4-q4_0", "gemma3-q5_0"}};
  return pairs;
}

TEST(ResidualDrafts, TextsHaveTheModelsDistribution) {
  for (const auto& [model, draft] : pairs()) {
    const Outcome outcome = outcome_of(model, draft, 40'000);
    EXPECT_LT(outcome.deviation, sampling::kMostDeviation) << model;
    const double share = static_cast<double>(outcome.made.num_right) / outcome.made.num_guesses;
    RecordProperty(model, std::to_string(outcome.deviation) + " sigmas, right " + std::to_string(share));
    EXPECT_GT(share, 0.05) << model;
    EXPECT_LT(share, 0.95) << model << ": or nothing was tested";
  }
}

// Beside as many that nobody guessed.
double guided_deviation(const std::string& model, const std::string& draft_model, Form form, Plant plant) {
  constexpr int kTexts = 10'000;
  const Made plain = Pair(model, draft_model, params(), form).make(kTexts, nullptr);
  const Made guessed = Pair(model, draft_model, params(), form).make(kTexts, plant);
  EXPECT_EQ(plain.num_guesses, 0);
  EXPECT_GT(guessed.num_guesses, kTexts / 20);
  std::map<std::vector<TokenId>, std::pair<int, int>> both;
  for (const auto& [text, count] : plain.counts) both[text].first = count;
  for (const auto& [text, count] : guessed.counts) both[text].second = count;
  std::vector<int> counts, plain_counts;
  for (const auto& [text, count] : both) {
    plain_counts.push_back(count.first);
    counts.push_back(count.second);
  }
  return sampling::chi_square_deviation(counts, plain_counts);
}

// Where a guess may end the text as well as go on, and where nothing may follow some guesses.
constexpr std::array kForms = {Form{.regex = "[a-c]{2,5}"}, Form{.regex = "[ab]{3}|[cd]{4}|a[cd]{4}", .has_end_token = false}};

TEST(ResidualDrafts, GuidedTextsHaveTheirDistribution) {
  for (const auto& [model, draft] : pairs()) {
    for (const Form& form : kForms) {
      EXPECT_LT(guided_deviation(model, draft, form, plant_nothing), sampling::kMostDeviation) << model << ", " << form.regex;
    }
  }
}

TEST(ResidualDrafts, GuidedTextsOfAWrongRuleHaveAnother) {
  for (const Form& form : kForms) {
    const auto& [model, draft] = pairs().front();
    EXPECT_GT(guided_deviation(model, draft, form, plant_unfiltered), sampling::kMostDeviation) << form.regex;
  }
}

TEST(ResidualDrafts, TextsOfRulesThatAreWrongHaveAnother) {
  for (const Plant plant : {plant_accept_always, plant_unfiltered, plant_no_residual}) {
    for (const auto& [model, draft] : pairs()) {
      EXPECT_GT(outcome_of(model, draft, 10'000, plant).deviation, sampling::kMostDeviation) << model;
    }
  }
}

}  // namespace
}  // namespace kvasir::residual_test
