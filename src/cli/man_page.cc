#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "cli/build_info.h"
#include "cli/option_value.h"

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

std::string option_names(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", escaped("--" + name));
  if (names.empty()) return fmt::format("\\fI{}\\fR", escaped(option.get_name(true)));
  if (option.get_expected_max() == 0) return names;
  return names + fmt::format(" \\fI{}\\fR", escaped(value_of(option).word));
}

std::string described(const CLI::Option& option) {
  return fmt::format(".TP\n{}\n{}\n", option_names(option), escaped(full_description(option)));
}

std::string options_of_group(const CLI::App& app, const std::string& group) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr() && option->get_group() == group) out += described(*option);
  }
  return out;
}

// Flags without a group, which are with --help, then group by group.
std::string options_of(const CLI::App& app) {
  const std::string general = app.get_help_ptr()->get_group();
  std::string out = options_of_group(app, general);
  for (const std::string& group : app.get_groups()) {
    const std::string options = group == general ? "" : options_of_group(app, group);
    if (!options.empty()) out += fmt::format(".SS {}\n", escaped(group)) + options;
  }
  return out;
}

// The examples that end a verb's help.
std::string examples_of(const CLI::App& verb) {
  const std::string footer = verb.get_footer();
  const std::string_view heading = "Examples:\n";
  if (!footer.starts_with(heading)) return "";
  const std::string examples = footer.substr(heading.size(), footer.find("\n\n") - heading.size());
  return fmt::format(".nf\n{}\n.fi\n", escaped(examples));
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
         synopsis("kvasir " + command, verb) + options_of(verb) + examples_of(verb);
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
  if (const std::string examples = examples_of(verb); !examples.empty()) out += section("EXAMPLES") + examples;
  out +=
      section("SEE ALSO") +
      fmt::format(".BR {} (1),\nwhich has the options that work after every verb, settings and exit codes\n",
                  escaped(app.get_name()));
  return out;
}

}  // namespace kvasir::cli
