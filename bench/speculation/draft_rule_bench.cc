// How many guesses of a draft model count, by the rule that checks them. No time is measured, so load does not matter.
//
// Usage: kvasir_draft_rule_bench MODEL DRAFT-MODEL FILE [--rule match|residual] [--guesses N,N] [--temperature T] [--top-k N]
//          [--top-p P] [--texts N] [--prompt N] [--gen N] [--threads N]
// Texts go on behind pieces of FILE, each with a seed of its own. Prints for each number of guesses a step: how many steps
// ran, the share of first guesses and of all guesses that counted, and tokens a step. Exit codes: 0, 2 (usage), 3 (a file).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/draft_model.h"
#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"
#include "store/model_store.h"
#include "text/tokenizer.h"

namespace kvasir {
namespace {

constexpr std::size_t kStreams = 8;

struct Options {
  std::vector<std::string> places;  // model, draft model, file
  bool is_residual = false;
  std::vector<std::int32_t> guesses = {1, 3, 5};
  SamplingParams params = {.temperature = 0.8f};
  std::int32_t num_texts = 48, num_prompt = 48, num_tokens = 64;
  int num_threads = 2;
};

struct Counts {
  std::int64_t num_steps = 0, num_tokens = 0, num_guesses = 0, num_right = 0;
  std::int64_t num_first_right = 0;
};

class Rule {
 public:
  Rule(LoadedModel& loaded, DraftModel& draft, const Options& options, std::vector<std::vector<TokenId>> prompts)
      : loaded_(loaded), draft_(draft), options_(options), prompts_(std::move(prompts)) {}

  Counts run(std::int32_t num_guesses) {
    kv::KvCacheManager kv(loaded_.kv);
    sched::Scheduler scheduler({.max_num_seqs = static_cast<std::int32_t>(kStreams), .max_num_batched_tokens = 512}, kv);
    runtime::ModelRunner runner(*loaded_.model, *loaded_.backend, loaded_.kv_views(kv.cells()),
                                loaded_.prefill_only_memory(kv.cells(), kv.prefill_only().group()),
                                loaded_.max_logit_rows);
    Counts counts;
    asked_.clear();
    for (std::size_t num_begun = 0; num_begun < prompts_.size() || scheduler.has_unfinished();) {
      for (; num_begun < prompts_.size() && numbers_.size() < kStreams; ++num_begun) begin(scheduler, num_begun);
      const sched::SchedulerOutput& output = scheduler.schedule({});
      std::vector<runtime::SamplingTask> tasks;
      had_guesses_.clear();
      for (const sched::ScheduledSequence& sequence : output.sequences) {
        had_guesses_[sequence.id] = sequence.num_draft_tokens();
        tasks.push_back({.params = &options_.params,
                         .seed = numbers_.at(sequence.id),
                         .allowed = sampling::AllowedTokens::all(),
                         .guesses_drawn_from = drawn_from(sequence)});
      }
      static_cast<void>(runner.run(output, tasks));
      take(scheduler, scheduler.update(runner.sampled(), {}), num_guesses, counts);
      draft_.guess(asked_);
      for (const DraftModel::Asked& asked : asked_) scheduler.set_draft(asked.id, asked.guesses);
    }
    return counts;
  }

 private:
  void begin(sched::Scheduler& scheduler, std::size_t number) {
    sched::SequenceRequest request;
    request.prompt_token_ids = prompts_[number];
    request.stop.max_tokens = options_.num_tokens;
    numbers_[*scheduler.add(std::move(request), {})] = number;
  }

  std::span<const sampling::Distribution> drawn_from(const sched::ScheduledSequence& sequence) const {
    const auto found = std::ranges::find(asked_, sequence.id, &DraftModel::Asked::id);
    const bool is_checked = options_.is_residual && sequence.num_draft_tokens() > 0;
    return is_checked ? std::span(found->drawn_from) : std::span<const sampling::Distribution>();
  }

  // Steps with fewer guesses than were asked for, beside a prompt or at an end, say nothing.
  void take(const sched::Scheduler& scheduler, std::span<const sched::SequenceUpdate> updates, std::int32_t num_guesses,
            Counts& counts) {
    asked_.clear();
    for (const sched::SequenceUpdate& update : updates) {
      if (had_guesses_.at(update.id) == num_guesses) {
        const auto num_right = std::ssize(update.tokens) - 1;
        ++counts.num_steps;
        counts.num_tokens += num_right + 1;
        counts.num_guesses += num_guesses;
        counts.num_right += num_right;
        counts.num_first_right += num_right > 0 ? 1 : 0;
      }
      if (update.finish_reason) {
        draft_.end(update.id);
        numbers_.erase(update.id);
        continue;
      }
      asked_.push_back({.id = update.id,
                        .tokens = scheduler.sequences().at(update.id).token_ids,
                        .num_prompt_tokens = options_.num_prompt,
                        .params = &options_.params,
                        .seed = numbers_.at(update.id),
                        .stop_tokens = {},
                        .num_guesses = num_guesses,
                        .is_residual = options_.is_residual,
                        .allowed_behind = [](std::span<const TokenId>) { return sampling::AllowedTokens::all(); }});
    }
  }

  LoadedModel& loaded_;
  DraftModel& draft_;
  const Options& options_;
  const std::vector<std::vector<TokenId>> prompts_;
  std::map<SequenceId, std::uint64_t> numbers_;  // of the texts that are made, which are their seeds
  std::map<SequenceId, std::int32_t> had_guesses_;
  std::vector<DraftModel::Asked> asked_;
};

bool read(std::span<char*> arguments, Options& options) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--")) {
      options.places.emplace_back(name);
      continue;
    }
    if (++i == arguments.size()) return false;
    const std::string value = arguments[i];
    const auto number = static_cast<std::int32_t>(std::strtol(value.c_str(), nullptr, 10));
    if (name == "--rule") {
      options.is_residual = value == "residual";
      if (!options.is_residual && value != "match") return false;
    } else if (name == "--guesses") {
      options.guesses.clear();
      for (std::size_t begin = 0; begin < value.size(); begin = std::min(value.find(',', begin), value.size() - 1) + 1) {
        options.guesses.push_back(static_cast<std::int32_t>(std::strtol(value.c_str() + begin, nullptr, 10)));
      }
    } else if (name == "--temperature") {
      options.params.temperature = std::strtof(value.c_str(), nullptr);
    } else if (name == "--top-k") {
      options.params.top_k = number;
    } else if (name == "--top-p") {
      options.params.top_p = std::strtof(value.c_str(), nullptr);
    } else if (name == "--texts") {
      options.num_texts = number;
    } else if (name == "--prompt") {
      options.num_prompt = number;
    } else if (name == "--gen") {
      options.num_tokens = number;
    } else if (name == "--threads") {
      options.num_threads = number;
    } else {
      return false;
    }
  }
  const auto is_number_of_guesses = [](std::int32_t count) { return count >= 1 && count <= 15; };
  return options.places.size() == 3 && options.num_texts > 0 && options.num_prompt > 0 && options.num_tokens > 1 &&
         std::ranges::all_of(options.guesses, is_number_of_guesses);
}

Result<std::vector<std::vector<TokenId>>> prompts_of(const Options& options, const text::Tokenizer& tokenizer) {
  std::ifstream file(options.places[2]);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::vector<TokenId> tokens = tokenizer.encode(text, {});
  const auto needed = static_cast<std::int64_t>(options.num_texts) * options.num_prompt;
  if (std::ssize(tokens) < needed) {
    return make_error(ErrorKind::kBadFile, fmt::format("{} has {} tokens, {} are needed", options.places[2], tokens.size(), needed));
  }
  std::vector<std::vector<TokenId>> prompts;
  for (auto begin = tokens.begin(); std::ssize(prompts) < options.num_texts; begin += options.num_prompt) {
    prompts.emplace_back(begin, begin + options.num_prompt);
  }
  return prompts;
}

Status measure(const Options& options) {
  EngineConfig config;
  config.num_threads = options.num_threads;
  config.kv_cache_tokens = static_cast<std::int64_t>(kStreams) * (options.num_prompt + options.num_tokens + 64);
  KVASIR_TRY(config.draft_model_path, store::resolve_model(options.places[1]));
  KVASIR_TRY(config.model_path, store::resolve_model(options.places[0]));
  KVASIR_TRY(const std::unique_ptr<DraftModel> draft, DraftModel::load(config, {}));
  KVASIR_TRY(LoadedModel loaded, load_model_file(config, {}, draft->pool()));
  if (loaded.tokenizer == nullptr) return make_error(ErrorKind::kBadFile, "the model has no tokenizer");
  KVASIR_CHECKED(draft->set_target(loaded.tokenizer.get(), loaded.info.vocab_size));
  KVASIR_TRY(auto prompts, prompts_of(options, *loaded.tokenizer));
  Rule rule(loaded, *draft, options, std::move(prompts));
  fmt::print("rule      guesses   steps   first right   +-      all right   tokens/step\n");
  for (const std::int32_t num_guesses : options.guesses) {
    const Counts counts = rule.run(num_guesses);
    const auto steps = static_cast<double>(counts.num_steps);
    const double first = static_cast<double>(counts.num_first_right) / steps;
    fmt::print("{:<9} {:>7} {:>7} {:>13.3f} {:>6.3f} {:>11.3f} {:>13.3f}\n", options.is_residual ? "residual" : "match",
               num_guesses, counts.num_steps, first, std::sqrt(first * (1.0 - first) / steps),
               static_cast<double>(counts.num_right) / static_cast<double>(counts.num_guesses),
               static_cast<double>(counts.num_tokens) / steps);
  }
  return {};
}

int main_of(std::span<char*> arguments) {
  Options options;
  if (!read(arguments, options)) {
    fmt::print(stderr, "usage: kvasir_draft_rule_bench MODEL DRAFT-MODEL FILE [--rule match|residual] [--guesses N,N] "
                       "[--temperature T] [--top-k N] [--top-p P] [--texts N] [--prompt N] [--gen N] [--threads N]\n");
    return 2;
  }
  const Status status = measure(options);
  if (status) return 0;
  fmt::print(stderr, "kvasir_draft_rule_bench: {}\n", status.error().message);
  return 3;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::main_of({argv, static_cast<std::size_t>(argc)}); }
