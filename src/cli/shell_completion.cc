#include "cli/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

namespace kvasir::cli {
namespace {

struct Word {
  std::string name;  // "run", "--threads"
  std::string description;
  bool takes_value = false;
};

// The program itself (no path), a verb, or a verb below a verb (path "eval ppl"), and what may follow it.
struct Node {
  std::vector<std::string> path;
  std::vector<Word> verbs;
  std::vector<Word> flags;
};

// Safe inside single quotes of every shell.
std::string unquoted(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '\'') out += c;
  }
  return out;
}

void collect(const CLI::App& app, const std::vector<std::string>& path, std::vector<Node>& nodes) {
  Node node = {.path = path, .verbs = {}, .flags = {}};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      node.flags.push_back(
          {"--" + name, unquoted(option->get_description()), option->get_expected_max() > 0});
    }
  }
  const auto verbs = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* verb : verbs)
    node.verbs.push_back({verb->get_name(), unquoted(verb->get_description())});
  nodes.push_back(std::move(node));
  for (const CLI::App* verb : verbs) {
    std::vector<std::string> below = path;
    below.push_back(verb->get_name());
    collect(*verb, below, nodes);
  }
}

// The program first; its flags work after every verb.
std::vector<Node> nodes_of(const CLI::App& app) {
  std::vector<Node> nodes;
  collect(app, {}, nodes);
  return nodes;
}

std::string bash_words(const std::vector<Word>& words) {
  std::string out;
  for (const Word& word : words) out += (out.empty() ? "" : " ") + word.name;
  return out;
}

std::string zsh_words(const std::vector<Word>& words) {
  std::string out;
  for (const Word& word : words) out += fmt::format(" '{}:{}'", word.name, word.description);
  return out;
}

std::string fish_condition(const std::vector<std::string>& path) {
  if (path.empty()) return "__fish_use_subcommand";
  std::vector<std::string> seen;
  for (const std::string& verb : path) seen.push_back("__fish_seen_subcommand_from " + verb);
  return fmt::format("{}", fmt::join(seen, "; and "));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const std::vector<Node> nodes = nodes_of(app);
  std::string out =
      "# bash completion for kvasir: source <(kvasir completion bash)\n"
      "_kvasir() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" verb='' word\n";
  out += fmt::format("  local words='{}'\n", bash_words(nodes.front().verbs));
  out +=
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"${verb:+$verb }$word\" in\n";
  for (const Node& node : nodes) {
    if (node.path.empty()) continue;
    out += fmt::format("      '{0}') verb='{0}' words='{1} {2}' ;;\n", fmt::join(node.path, " "),
                       bash_words(node.verbs), bash_words(node.flags));
  }
  out += "    esac\n  done\n";
  out += fmt::format("  COMPREPLY=($(compgen -W \"$words {}\" -- \"$current\"))\n",
                     bash_words(nodes.front().flags));
  return out + "}\ncomplete -o default -F _kvasir kvasir\n";
}

std::string zsh_completion(const CLI::App& app) {
  const std::vector<Node> nodes = nodes_of(app);
  std::string out =
      "#compdef kvasir\n"
      "# zsh completion for kvasir: source <(kvasir completion zsh)\n"
      "_kvasir() {\n"
      "  local verb='' word\n";
  out += fmt::format("  local -a choices=({})\n", zsh_words(nodes.front().verbs));
  out +=
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
      "    case \"${verb:+$verb }$word\" in\n";
  for (const Node& node : nodes) {
    if (node.path.empty()) continue;
    out += fmt::format("      '{0}') verb='{0}'; choices=({1}{2}) ;;\n", fmt::join(node.path, " "),
                       zsh_words(node.verbs), zsh_words(node.flags));
  }
  out += "    esac\n  done\n";
  out += fmt::format("  choices+=({})\n", zsh_words(nodes.front().flags));
  return out + "  _describe kvasir choices || _files\n}\ncompdef _kvasir kvasir\n";
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "# fish completion for kvasir: kvasir completion fish | source\n";
  for (const Node& node : nodes_of(app)) {
    const std::string condition = fish_condition(node.path);
    for (const Word& verb : node.verbs) {
      out +=
          fmt::format("complete -c kvasir -n '{}' -a {} -d '{}'\n", condition, verb.name, verb.description);
    }
    for (const Word& flag : node.flags) {
      const std::string where = node.path.empty() ? "" : fmt::format(" -n '{}'", condition);
      out += fmt::format("complete -c kvasir{} -l {}{} -d '{}'\n", where, flag.name.substr(2),
                         flag.takes_value ? " -r" : "", flag.description);
    }
  }
  return out;
}

}  // namespace kvasir::cli
