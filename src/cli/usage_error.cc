#include "cli/usage_error.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/nearest_name.h"
#include "base/printable.h"
#include "cli/foreign_name.h"
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

// The option of the program or of the verb that has this long name, or null.
const CLI::Option* find_flag(const CLI::App& app, const CLI::App& verb, std::string_view name) {
  for (const CLI::App* owner : {&app, &verb}) {
    for (const CLI::Option* option : owner->get_options()) {
      if (std::ranges::find(option->get_lnames(), name) != option->get_lnames().end()) return option;
    }
  }
  return nullptr;
}

// The same of one letter, as in "-n".
bool has_short_flag(const CLI::App& app, const CLI::App& verb, std::string_view argument) {
  const auto has = [&](const CLI::Option* option) {
    return std::ranges::any_of(option->get_snames(), [&](const std::string& name) { return argument == "-" + name; });
  };
  return std::ranges::any_of(app.get_options(), has) || std::ranges::any_of(verb.get_options(), has);
}

std::string nearest_flag(const CLI::App& app, const CLI::App& verb, std::string_view name) {
  std::vector<std::string> flags;
  for (const CLI::App* owner : {&app, &verb}) {
    for (const CLI::Option* option : owner->get_options()) {
      for (const std::string& flag : option->get_lnames()) flags.push_back(flag);
    }
  }
  return did_you_mean("--", name, flags);
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
  }
  return verbs;
}

// "--port comes behind its verb: kvasir serve --port"; empty: no verb has the flag.
std::string belongs_behind_a_verb(const CLI::App& app, std::string_view name) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (find_flag(app, *verb, name) == nullptr) continue;
    const std::string flag = "--" + std::string(name);
    return flag + " comes behind its verb: kvasir " + verb->get_name() + " " + flag;
  }
  return {};
}

// Whether a word that stands for a verb is rather a model.
bool is_like_a_model(std::string_view word) {
  return word.ends_with(".gguf") || word.contains(':') || word.contains('/');
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

}  // namespace

std::string verb_path(const CLI::App& app, int argc, char** argv) {
  std::string path = "kvasir";
  const CLI::App* current = &app;
  for (int i = 1; i < argc; ++i) {
    const CLI::App* const below = find_verb(*current, argv[i]);
    if (below == nullptr) continue;
    current = below;
    path += " " + below->get_name();
  }
  return path;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string message = error.what();
  std::ranges::replace(message, '\n', ' ');
  // "--port: 1 required UINT:0 to 65535 missing"
  if (const std::size_t at = message.find(": 1 required "); at != message.npos && message.ends_with(" missing")) {
    message = message.substr(0, at) + ": a value is missing";
  }
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  if (const std::size_t at = message.find(kTwice); at != message.npos) {
    message = message.substr(0, at) + ": given " + message.substr(at + kTwice.size()) + " times, once is enough";
  }
  if (message.starts_with("--model is required")) message.replace(0, std::string_view("--model").size(), "MODEL");
  const auto with_hint = [](std::string text, const std::string& hint) {
    return hint.empty() ? text : std::move(text) + "; " + hint;
  };
  const CLI::App* current = &app;  // the verb so far
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--") && argument.size() > 2) {
      const std::string_view name = argument.substr(2, argument.find('=') - 2);
      const CLI::Option* flag = find_flag(app, *current, name);
      if (flag == nullptr) {
        const std::string elsewhere = current == &app ? belongs_behind_a_verb(app, name) : "";
        if (!elsewhere.empty()) return elsewhere;
        const std::string hint = foreign_flag_hint(argument.substr(0, argument.find('=')));
        // The library's message has values before flags, and takes the flag's value for another fault.
        if (message.contains(" not expected")) message = "there is no flag --" + printable(name);
        return with_hint(message, hint.empty() ? nearest_flag(app, *current, name) : hint);
      }
      const bool value_follows = flag->get_expected_max() > 0 && argument.find('=') == argument.npos;
      if (value_follows) ++i;
    } else if (has_short_flag(app, *current, argument)) {
      continue;
    } else if (const std::string flag_hint = foreign_flag_hint(argument); !flag_hint.empty()) {
      return std::string(argument) + " is no flag of Kvasir; " + flag_hint;
    } else if (argument.starts_with("-") && argument.size() > 1 && message.contains(" not expected")) {
      return "there is no flag " + printable(argument);
    } else if (const auto verbs = verbs_of(*current); !verbs.empty() && !argument.starts_with("-")) {
      const CLI::App* below = find_verb(*current, argument);
      if (below == nullptr) {
        if (const std::string_view flag = argv[i - 1]; current == &app && flag.size() == 2 && flag[0] == '-') {
          return std::string(flag) + " comes behind a verb: kvasir run " + std::string(flag) + " " + printable(argument);
        }
        const std::string parent = current == &app ? "" : current->get_name() + " ";
        std::string hint = foreign_verb_hint(parent + std::string(argument));
        if (hint.empty() && current == &app && is_like_a_model(argument)) {
          hint = "a model goes behind one: kvasir run " + printable(argument);
        }
        return with_hint("there is no verb '" + parent + printable(argument) + "'",
                         hint.empty() ? did_you_mean("", argument, verbs) : hint);
      }
      current = below;
    }
  }
  if (current->get_name() == "run" && message.contains(" not expected")) {
    return with_hint(message, "a prompt of several words stands in quotes");
  }
  if (message.starts_with("A subcommand is required")) return with_hint(message, "one of " + joined(verbs_of(*current)));
  return message;
}

}  // namespace kvasir::cli
