#include "cli/suggestion.h"

#include <string_view>
#include <vector>

#include "base/nearest_name.h"
#include "cli/settings.h"

namespace kvasir::cli {
namespace {

std::string did_you_mean(std::string_view name) {
  return name.empty() ? std::string() : "did you mean '" + std::string(name) + "'?";
}

std::string suggest_flag(const CLI::App& app, const CLI::App* verb, std::string_view argument) {
  const std::string_view name = argument.substr(
      2, argument.find('=') == std::string_view::npos ? std::string_view::npos : argument.find('=') - 2);
  std::vector<std::string> flags;
  for (const CLI::App* owner : {&app, verb}) {
    if (owner == nullptr) continue;
    for (const CLI::Option* option : owner->get_options()) {
      for (const std::string& flag : option->get_lnames()) flags.push_back(flag);
    }
  }
  std::vector<std::string_view> candidates(flags.begin(), flags.end());
  for (std::string_view candidate : candidates) {
    if (candidate == name) return {};
  }
  const std::string_view nearest = nearest_name(name, candidates);
  return did_you_mean(nearest.empty() ? std::string() : "--" + std::string(nearest));
}

}  // namespace

std::string suggest(const CLI::App& app, int argc, char** argv) {
  const CLI::App* verb = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--") && argument.size() > 2) {
      if (std::string hint = suggest_flag(app, verb, argument); !hint.empty()) return hint;
      continue;
    }
    if (verb != nullptr || argument.starts_with("-")) continue;
    verb = find_verb(app, argument);
    if (verb != nullptr) continue;
    std::vector<std::string> verbs;
    for (const CLI::App* known : app.get_subcommands([](const CLI::App*) { return true; }))
      verbs.push_back(known->get_name());
    const std::vector<std::string_view> candidates(verbs.begin(), verbs.end());
    return did_you_mean(nearest_name(argument, candidates));
  }
  return {};
}

}  // namespace kvasir::cli
