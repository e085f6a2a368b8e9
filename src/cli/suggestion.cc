#include "cli/suggestion.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/nearest_name.h"
#include "cli/settings.h"

namespace kvasir::cli {
namespace {

std::string did_you_mean(std::string_view prefix, std::string_view name,
                         const std::vector<std::string>& known) {
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  const std::string_view nearest = nearest_name(name, candidates);
  if (nearest.empty()) return {};
  return "did you mean '" + std::string(prefix) + std::string(nearest) + "'?";
}

// Empty when the flag exists, or resembles none.
std::string suggest_flag(const CLI::App& app, const CLI::App& verb, std::string_view argument) {
  const std::string_view name = argument.substr(2, argument.find('=') - 2);
  std::vector<std::string> flags;
  for (const CLI::App* owner : {&app, &verb}) {
    for (const CLI::Option* option : owner->get_options()) {
      for (const std::string& flag : option->get_lnames()) flags.push_back(flag);
    }
  }
  return std::ranges::find(flags, name) != flags.end() ? std::string() : did_you_mean("--", name, flags);
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
  }
  return verbs;
}

}  // namespace

std::string suggest(const CLI::App& app, int argc, char** argv) {
  const CLI::App* current = &app;  // the verb so far
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--") && argument.size() > 2) {
      if (std::string hint = suggest_flag(app, *current, argument); !hint.empty()) return hint;
    } else if (const auto verbs = verbs_of(*current); !verbs.empty() && !argument.starts_with("-")) {
      const CLI::App* below = find_verb(*current, argument);
      if (below == nullptr) return did_you_mean("", argument, verbs);
      current = below;
    }
  }
  return {};
}

}  // namespace kvasir::cli
