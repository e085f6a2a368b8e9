#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "cli/build_info.h"

namespace kvasir::cli {
namespace {

// Text that troff prints as it stands: it reads a backslash as its own, a dot or an apostrophe that begins a
// line as a command, and a bare hyphen as one that a reader could not copy.
std::string escaped(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins_line = c == '\n';
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::vector<const CLI::App*> verbs_below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string header(const std::string& name) {
  return fmt::format(".TH {} 1 \"\" \"kvasir {}\" \"Kvasir\"\n", escaped(upper(name)),
                     escaped(build_info().version));
}

std::string section(std::string_view title) { return fmt::format(".SH {}\n", title); }

// Commas that a line may be broken behind.
std::string spaced(std::string_view list) {
  std::string out;
  for (const char c : list) {
    out += c;
    if (c == ',') out += ' ';
  }
  return out;
}

// An option's value: the word behind its name, and the facts that its description leaves out.
struct Value {
  std::string word;   // "NAME", "N"
  std::string range;  // "one of exact, gate", "1 to 4096"; empty: anything
};

// The parser shows it as "TEXT:{f16,f32}", "1 to 4096" or "INT:INT in [1 - 9]".
Value value_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  if (const std::size_t colon = type.find(':'); colon != std::string::npos) type.erase(0, colon + 1);
  if (type.empty()) return {"VALUE", ""};
  if (type.front() == '{') return {"NAME", "one of " + spaced(type.substr(1, type.size() - 2))};
  const bool is_word = std::ranges::all_of(type, [](unsigned char c) { return std::isupper(c) != 0; });
  return is_word ? Value{type, ""} : Value{"N", type};
}

std::string option_names(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", escaped("--" + name));
  if (names.empty()) return fmt::format("\\fI{}\\fR", escaped(option.get_name(true)));
  if (option.get_expected_max() == 0) return names;
  return names + fmt::format(" \\fI{}\\fR", escaped(value_of(option).word));
}

std::string described(const CLI::Option& option) {
  std::string out = option.get_description();
  if (option.get_expected_max() > 0) {
    const std::string range = value_of(option).range;
    if (!range.empty()) out += fmt::format("; {}", range);
    const std::string value = option.get_default_str();
    if (!value.empty()) out += fmt::format(" [default: {}]", spaced(value));
  }
  if (option.get_required()) out += " (required)";
  return fmt::format(".TP\n{}\n{}\n", option_names(option), escaped(out));
}

std::string options_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames() == std::vector<std::string>{"help"}) continue;
    out += described(*option);
  }
  return out;
}

std::string synopsis(const std::string& command, const CLI::App& verb) {
  std::string out = fmt::format(".B {}\n", escaped(command));
  if (verb.get_require_subcommand_min() > 0) out += ".I VERB\n";
  out += "[\\fIOPTIONS\\fR]\n";
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = escaped(option->get_name(true));
    out += option->get_required() ? fmt::format(".I {}\n", name) : fmt::format("[\\fI{}\\fR]\n", name);
  }
  return out;
}

std::string name_and_description(const CLI::App& verb) {
  return fmt::format(".TP\n.B {}\n{}\n", escaped(verb.get_name()), escaped(verb.get_description()));
}

// A verb below the page's verb, which has no page of its own.
std::string inner_verb(const std::string& command, const CLI::App& verb) {
  return section(escaped(upper(command))) + escaped(verb.get_description()) + ".\n.PP\n" +
         synopsis("kvasir " + command, verb) + options_of(verb);
}

constexpr std::string_view kSettings =
    "A flag that is not given has the value of the variable with its name, \\fBKVASIR_PORT\\fR for\n"
    "\\fB\\-\\-port\\fR; else that of the settings file, in the verb's table or above all tables; else its\n"
    "default. The file is the one that \\fBKVASIR_CONFIG\\fR names (empty: none), else \\fIkvasir.toml\\fR "
    "in\n"
    "the current folder, else \\fIkvasir/kvasir.toml\\fR below \\fBXDG_CONFIG_HOME\\fR or\n"
    "\\fI~/.config\\fR. \\fBkvasir config\\fR prints each value and where it came from.\n"
    ".PP\n"
    "Models live below \\fBKVASIR_HOME\\fR, else in \\fIkvasir\\fR below \\fBXDG_DATA_HOME\\fR or\n"
    "\\fI~/.local/share\\fR.\n";

}  // namespace

std::string program_man_page(const CLI::App& app) {
  std::string out = header("kvasir");
  out += section("NAME") + "kvasir \\- serves language models from the machine you have\n";
  out += section("SYNOPSIS") + synopsis("kvasir", app);
  out += section("VERBS");
  for (const CLI::App* verb : verbs_below(app)) out += name_and_description(*verb);
  out += section("OPTIONS") + "These work after every verb.\n" + options_of(app);
  out += section("SETTINGS") + std::string(kSettings);
  out += section("EXIT STATUS") + escaped(app.get_footer()) + "\n";
  out += section("SEE ALSO");
  std::string pages;
  for (const CLI::App* verb : verbs_below(app))
    pages += (pages.empty() ? "" : ",\n") + fmt::format(".BR kvasir\\-{} (1)", escaped(verb->get_name()));
  return out + pages + "\n";
}

std::string verb_man_page(const CLI::App& app, const CLI::App& verb) {
  const std::string name = "kvasir-" + verb.get_name();
  std::string out = header(name);
  out += section("NAME") + fmt::format("{} \\- {}\n", escaped(name), escaped(verb.get_description()));
  out += section("SYNOPSIS") + synopsis("kvasir " + verb.get_name(), verb);
  const std::string options = options_of(verb);
  if (!options.empty()) out += section("OPTIONS") + options;
  for (const CLI::App* below : verbs_below(verb))
    out += inner_verb(verb.get_name() + " " + below->get_name(), *below);
  out +=
      section("SEE ALSO") +
      fmt::format(".BR {} (1),\nwhich has the options that work after every verb, settings and exit codes\n",
                  escaped(app.get_name()));
  return out;
}

}  // namespace kvasir::cli
