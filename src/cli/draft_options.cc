#include "cli/draft_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/nearest_name.h"
#include "base/printable.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

// Tokens that a guide forces come in any case, so "grammar" is a word that changes nothing.
constexpr std::array<std::string_view, 5> kDrafterNames = {"suffix", "store", "heads", "draft", "grammar"};

std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string check_drafters(const std::string& text) {
  if (text == "auto" || text == "off") return {};
  for (const std::string_view name : names_in(text)) {
    if (name == "auto" || name == "off") return fmt::format("takes {} alone, not in a list", name);
    if (std::ranges::find(kDrafterNames, name) != kDrafterNames.end()) continue;
    std::vector<std::string_view> known(kDrafterNames.begin(), kDrafterNames.end());
    known.insert(known.end(), {"auto", "off"});
    const std::string_view nearest = nearest_name(name, known);
    return fmt::format("takes auto, off or a list of {}, not '{}'{}", fmt::join(kDrafterNames, ","), printable(name),
                       nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
  }
  return {};
}

Status set_sources(const EngineOptions& options, EngineConfig& config) {
  config.speculates = options.speculate != "off";
  if (!config.speculates || options.speculate == "auto") return {};
  const std::vector<std::string_view> names = names_in(options.speculate);
  const auto is_named = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  config.drafts_from_text = is_named("suffix");
  config.drafts_from_answers = is_named("store");
  config.drafts_from_heads = is_named("heads");
  if (is_named("draft") != options.draft_model.empty()) return {};
  return make_error(ErrorKind::kUsage,
                    options.draft_model.empty() ? "--speculate draft: --draft-model says which model guesses"
                                                : "--draft-model: --speculate has a list without draft",
                    "draft-model");
}

}  // namespace

void add_speculate_option(CLI::App& verb, EngineOptions& options, const std::string& by_default) {
  options.speculate = by_default;
  verb.add_option("--speculate", options.speculate,
                  "Guess tokens and check several in a step, where that is faster: the same answer. From all that there is "
                  "(auto), nothing (off), or some of suffix (the text so far), store (finished answers), heads (a trained "
                  "file), draft (a model), with commas")
      ->check(CLI::Validator(check_drafters, "NAMES"))
      ->capture_default_str();
  add_draft_options(verb, options);
}

void add_draft_options(CLI::App& verb, EngineOptions& options) {
  verb.add_option("--max-draft-tokens", options.max_draft_tokens, "Most guesses of a request in a step")
      ->transform(whole_number(1, EngineConfig{}.max_draft_tokens))
      ->capture_default_str();
  verb.add_option("--draft-heads", options.draft_heads,
                  "A file of kvasir draft train that guesses too (default: the one beside the model, or the program's own for it)");
  verb.add_option("--draft-model", options.draft_model,
                  "A small model with the same tokens that guesses too, where that is faster: the same answer");
  verb.add_option("--draft-rule", options.draft_rule,
                  "How guesses of the draft model are checked: the same answer as without them (match), or where a request "
                  "is sampled without a seed another of the same distribution, as more guesses count then (residual)")
      ->check(one_of({"match", "residual"}))
      ->capture_default_str();
}

Status set_drafters(const EngineOptions& options, EngineConfig& config) {
  KVASIR_CHECKED(set_sources(options, config));
  config.max_draft_tokens = options.max_draft_tokens;
  config.draft_heads_path = options.draft_heads;
  if (!options.draft_heads.empty() && !(config.speculates && config.drafts_from_heads)) {
    return make_error(ErrorKind::kUsage, "--draft-heads: --speculate leaves them out", "draft-heads");
  }
  if (!options.draft_model.empty()) {
    if (!config.speculates) {
      return make_error(ErrorKind::kUsage, "--draft-model: nothing is guessed with --speculate off", "draft-model");
    }
    KVASIR_TRY(config.draft_model_path, store::resolve_model(options.draft_model));
  }
  if (options.draft_rule == "residual") {
    if (options.draft_model.empty()) {
      return make_error(ErrorKind::kUsage, "--draft-rule residual: it is for guesses of a --draft-model", "draft-rule");
    }
    config.draft_rule = DraftRule::kResidual;
  }
  return {};
}

}  // namespace kvasir::cli
