#include "cli/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir::cli {
namespace {

struct Word {
  std::string name;  // "run", "--threads"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values = {};  // of a flag that takes one of these; else empty
};

// The program itself (no path), a verb, or a verb below a verb (path "eval ppl"), and what may follow it.
struct Node {
  std::vector<std::string> path;
  std::vector<Word> verbs;
  std::vector<Word> flags;
  std::vector<std::string> values;  // of an argument that takes one of these
  bool takes_model = false;         // an argument names a model
};

// Safe inside single quotes of every shell.
std::string unquoted(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '\'') out += c;
  }
  return out;
}

// The parser shows what an option takes as "TEXT:{f16,f32}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

void add_argument(const CLI::Option& argument, Node& node) {
  const std::string name = argument.get_name(true);
  if (name == "MODEL" || name == "NAME") node.takes_model = true;
  for (std::string& value : values_of(argument)) node.values.push_back(std::move(value));
}

// `everywhere`: the program's own flags, which work after every verb and are not repeated there.
void collect(const CLI::App& app, const std::vector<std::string>& path,
             const std::set<std::string>& everywhere, std::vector<Node>& nodes) {
  Node node;
  node.path = path;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) add_argument(*option, node);
    for (const std::string& name : option->get_lnames()) {
      if (!path.empty() && everywhere.contains(name)) continue;
      node.flags.push_back({"--" + name, unquoted(option->get_description()), option->get_expected_max() > 0,
                            values_of(*option)});
    }
  }
  const auto verbs = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* verb : verbs)
    node.verbs.push_back({.name = verb->get_name(), .description = unquoted(verb->get_description())});
  nodes.push_back(std::move(node));
  for (const CLI::App* verb : verbs) {
    std::vector<std::string> below = path;
    below.push_back(verb->get_name());
    collect(*verb, below, everywhere, nodes);
  }
}

// The program first; its flags work after every verb.
std::vector<Node> nodes_of(const CLI::App& app) {
  std::set<std::string> everywhere;
  for (const CLI::Option* option : app.get_options())
    everywhere.insert(option->get_lnames().begin(), option->get_lnames().end());
  std::vector<Node> nodes;
  collect(app, {}, everywhere, nodes);
  return nodes;
}

// The flags that a value follows, by what they take; without a set of values it may be a file.
std::map<std::vector<std::string>, std::set<std::string>> flags_by_values(const std::vector<Node>& nodes) {
  std::map<std::vector<std::string>, std::set<std::string>> flags;
  for (const Node& node : nodes) {
    for (const Word& flag : node.flags) {
      if (flag.takes_value) flags[flag.values].insert(flag.name);
    }
  }
  return flags;
}

// The names of models, one a line.
constexpr std::string_view kListModels = "list 2>/dev/null | tail -n +2 | cut -d\" \" -f1";

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
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local verb='' models='' word\n";
  out += fmt::format("  local words='{}'\n", bash_words(nodes.front().verbs));
  out +=
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"${verb:+$verb }$word\" in\n";
  for (const Node& node : nodes) {
    if (node.path.empty()) continue;
    out += fmt::format("      '{0}') verb='{0}' models='{1}' words='{2} {3} {4}' ;;\n",
                       fmt::join(node.path, " "), node.takes_model ? "yes" : "", bash_words(node.verbs),
                       bash_words(node.flags), fmt::join(node.values, " "));
  }
  out += "    esac\n  done\n  case \"$previous\" in\n";
  for (const auto& [values, flags] : flags_by_values(nodes)) {
    out += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                       fmt::join(flags, "|"), fmt::join(values, " "));
  }
  out += "  esac\n";
  out += fmt::format("  COMPREPLY=($(compgen -W \"$words {}\" -- \"$current\"))\n",
                     bash_words(nodes.front().flags));
  out +=
      "  [[ $models && $current != -* ]] || return\n"
      "  # Bash ends a word at the colon of a model's name and puts in what follows the colon.\n"
      "  local typed=\"${COMP_LINE:0:COMP_POINT}\"\n"
      "  typed=\"${typed##* }\"\n";
  out +=
      fmt::format("  models=($(compgen -W \"$(\"${{COMP_WORDS[0]}}\" {})\" -- \"$typed\"))\n", kListModels);
  out +=
      "  [[ $typed != *:* ]] || models=(\"${models[@]#\"${typed%:*}:\"}\")\n"
      "  COMPREPLY+=(\"${models[@]}\")\n";
  return out + "}\ncomplete -o default -F _kvasir kvasir\n";
}

std::string zsh_completion(const CLI::App& app) {
  const std::vector<Node> nodes = nodes_of(app);
  std::string out =
      "#compdef kvasir\n"
      "# zsh completion for kvasir: source <(kvasir completion zsh)\n"
      "_kvasir() {\n"
      "  local verb='' models='' word\n";
  out += fmt::format("  local -a choices=({})\n", zsh_words(nodes.front().verbs));
  out +=
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
      "    case \"${verb:+$verb }$word\" in\n";
  for (const Node& node : nodes) {
    if (node.path.empty()) continue;
    out += fmt::format("      '{0}') verb='{0}' models='{1}'; choices=({2}{3} {4}) ;;\n",
                       fmt::join(node.path, " "), node.takes_model ? "yes" : "", zsh_words(node.verbs),
                       zsh_words(node.flags), fmt::join(node.values, " "));
  }
  out += "    esac\n  done\n  case \"${words[CURRENT-1]}\" in\n";
  for (const auto& [values, flags] : flags_by_values(nodes)) {
    out += values.empty() ? fmt::format("    {}) _files; return ;;\n", fmt::join(flags, "|"))
                          : fmt::format("    {}) choices=({}); _describe value choices; return ;;\n",
                                        fmt::join(flags, "|"), fmt::join(values, " "));
  }
  out += "  esac\n";
  out += fmt::format("  choices+=({})\n", zsh_words(nodes.front().flags));
  // A colon would end the name and begin its description.
  out += fmt::format(
      "  [[ -n $models ]] && choices+=(${{(f)\"$(\"${{words[1]}}\" {} | sed 's/:/\\\\:/g')\"}})\n",
      kListModels);
  out += "  _describe kvasir choices\n  [[ -n $models ]] && _files\n}\n";
  // From a folder of completions zsh loads the file when it is first needed, as the function itself.
  return out + "if [[ $funcstack[1] == _kvasir ]]; then _kvasir; else compdef _kvasir kvasir; fi\n";
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "# fish completion for kvasir: kvasir completion fish | source\n";
  for (const Node& node : nodes_of(app)) {
    const std::string condition = fish_condition(node.path);
    for (const Word& verb : node.verbs) {
      out +=
          fmt::format("complete -c kvasir -n '{}' -a {} -d '{}'\n", condition, verb.name, verb.description);
    }
    if (node.takes_model)
      out += fmt::format("complete -c kvasir -n '{}' -a '(kvasir {})'\n", condition, kListModels);
    if (!node.values.empty())
      out += fmt::format("complete -c kvasir -n '{}' -f -a '{}'\n", condition, fmt::join(node.values, " "));
    for (const Word& flag : node.flags) {
      const std::string where = node.path.empty() ? "" : fmt::format(" -n '{}'", condition);
      const std::string value = !flag.values.empty() ? fmt::format(" -x -a '{}'", fmt::join(flag.values, " "))
                                : flag.takes_value   ? " -r"
                                                     : "";
      out += fmt::format("complete -c kvasir{} -l {}{} -d '{}'\n", where, flag.name.substr(2), value,
                         flag.description);
    }
  }
  return out;
}

}  // namespace kvasir::cli
