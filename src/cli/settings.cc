#include "cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "base/env.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "cli/input_file.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

struct SettingsFile {
  std::string path;
  toml::table table;
};

std::optional<std::string> find_file() {
  std::error_code ignored;
  if (const char* named = std::getenv("KVASIR_CONFIG")) {
    return *named == '\0' ? std::nullopt : std::optional<std::string>(named);
  }
  if (std::filesystem::exists("kvasir.toml", ignored)) return "kvasir.toml";
  std::filesystem::path home;
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME")) {
    home = xdg;
  } else if (const char* user = std::getenv("HOME")) {
    home = std::filesystem::path(user) / ".config";
  }
  const std::filesystem::path path = home / "kvasir" / "kvasir.toml";
  if (!home.empty() && std::filesystem::exists(path, ignored)) return path.string();
  return std::nullopt;
}

Result<std::optional<SettingsFile>> read_settings_file() {
  const auto path = find_file();
  if (!path) return std::optional<SettingsFile>();
  KVASIR_TRY(const std::string text, cli::read_file(*path, kMaxFileBytes));
  try {
    return SettingsFile{*path, toml::parse(text)};
  } catch (const toml::parse_error& error) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}:{}: {}", printable_line(*path), error.source().begin.line,
                                  printable_line(error.description())));
  }
}

std::string variable_of(const std::string& flag) {
  std::string name = "KVASIR_";
  for (char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::optional<std::string> text_of(const toml::node* node);

// As on the command line: 128,512.
std::optional<std::string> text_of_list(const toml::array& list) {
  std::string joined;
  for (const toml::node& element : list) {
    const auto text = text_of(&element);
    if (!text) return std::nullopt;
    joined += (joined.empty() ? "" : ",") + *text;
  }
  return joined;
}

std::optional<std::string> text_of(const toml::node* node) {
  if (node == nullptr) return std::nullopt;
  if (const auto value = node->value_exact<std::string>()) return *value;
  if (const auto value = node->value_exact<bool>()) return *value ? "true" : "false";
  if (const auto value = node->value_exact<std::int64_t>()) return std::to_string(*value);
  if (const auto value = node->value_exact<double>()) return fmt::format("{}", *value);
  if (const toml::array* list = node->as_array()) return text_of_list(*list);
  return std::nullopt;
}

bool is_switch(const CLI::Option& option) { return option.get_expected_max() == 0; }

// Applies one source's value; a value that the flag refuses is an Error naming the source.
Status set_default(CLI::Option& option, const std::string& value, const std::string& origin) {
  const std::string source = printable_line(origin);
  try {
    if (!is_switch(option)) {
      option.run_callback_for_default();  // flags that keep their value elsewhere than in a variable have one
      option.default_val(value);
    } else if (const std::optional<bool> on = parse_switch(value); !on) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("{}: --{} is true or false, 1 or 0, yes or no, on or off, not '{}'",
                                    source, option.get_lnames()[0], printable(value)));
    } else if (*on) {  // a switch that is off was not counted
      option.default_val("true");
    }
    option.required(false);
    return {};
  } catch (const CLI::Error& error) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: {}", source, printable_line(error.what())));
  }
}

class Applier {
 public:
  explicit Applier(const std::optional<SettingsFile>& file) : file_(file) {}

  // The options of `app`, which is the verb at `path` ("", "run", "eval.ppl"), and of the verbs below it.
  Status apply(CLI::App& app, const std::string& path) {
    for (CLI::Option* option : app.get_options()) {
      if (option->get_lnames().empty() || is_about_the_program(option->get_lnames()[0])) continue;
      KVASIR_CHECKED(apply_option(*option, path));
    }
    for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
      const std::string below = path.empty() ? verb->get_name() : path + "." + verb->get_name();
      verbs_.push_back(below);
      KVASIR_CHECKED(apply(*verb, below));
    }
    return {};
  }

  // Every key of the file must have been some flag's, every table a verb's.
  Status check_keys() const { return file_ ? check_table(file_->table, "") : Status(); }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  static bool is_about_the_program(const std::string& flag) { return flag == "help" || flag == "version"; }

  Status check_table(const toml::table& table, const std::string& prefix) const {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const toml::table* below = node.as_table()) {
        if (std::ranges::find(verbs_, name) == verbs_.end()) return no_verb(name);
        KVASIR_CHECKED(check_table(*below, name + "."));
      } else if (!used_.contains(name)) {
        return make_error(ErrorKind::kUsage,
                          fmt::format("{}: no flag has the name '{}'", source(), printable(name)));
      }
    }
    return {};
  }

  Status no_verb(const std::string& name) const {
    const std::string_view nearest =
        nearest_name(name, std::vector<std::string_view>(verbs_.begin(), verbs_.end()));
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}: no verb has the name '{}'{}", source(), printable(name),
                                  nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  }

  std::string source() const { return printable_line(file_->path); }

  Status apply_option(CLI::Option& option, const std::string& path) {
    const std::string flag = option.get_lnames()[0];
    Setting setting{path, flag, "", "default"};
    const std::string variable = variable_of(flag);
    const auto from_environment = env_string(variable.c_str());
    KVASIR_TRY(const auto from_file, find_in_file(option, path));
    if (from_environment) {
      setting.origin = variable;
      KVASIR_CHECKED(set_default(option, *from_environment, variable));
    } else if (from_file) {
      setting.origin = file_->path;
      KVASIR_CHECKED(set_default(option, *from_file, file_->path));
    }
    setting.value =
        is_switch(option) && option.get_default_str().empty() ? "false" : option.get_default_str();
    settings_.push_back(std::move(setting));
    return {};
  }

  // The verb's own table before the file's top level; both count as used. A table is some verb's, never a
  // value.
  Result<std::optional<std::string>> find_in_file(const CLI::Option& option, const std::string& path) {
    const std::string flag = option.get_lnames()[0];
    std::optional<std::string> value;
    if (!file_) return value;
    for (const std::string& key : {path.empty() ? flag : path + "." + flag, flag}) {
      const toml::node* node = file_->table.at_path(key).node();
      if (node == nullptr || node->is_table()) continue;
      if (node->is_array() && option.get_delimiter() != ',') {
        return make_error(ErrorKind::kUsage,
                          fmt::format("{}: {} is a list, and --{} takes one value", source(), key, flag));
      }
      auto found = text_of(node);
      if (!found) {
        return make_error(
            ErrorKind::kUsage,
            fmt::format("{}: {} takes text, a number, true or false, or a list of them", source(), key));
      }
      used_.insert(key);
      if (!value) value = std::move(found);
    }
    return value;
  }

  const std::optional<SettingsFile>& file_;
  std::vector<Setting> settings_;
  std::vector<std::string> verbs_;  // "eval", "eval.ppl"
  std::set<std::string> used_;      // keys of the file
};

}  // namespace

const CLI::App* find_verb(const CLI::App& app, std::string_view name) {
  const auto verbs = app.get_subcommands([name](const CLI::App* verb) { return verb->get_name() == name; });
  return verbs.empty() ? nullptr : verbs.front();
}

Result<std::vector<Setting>> apply_settings(CLI::App& app) {
  KVASIR_TRY(const auto file, read_settings_file());
  Applier applier(file);
  KVASIR_CHECKED(applier.apply(app, ""));
  KVASIR_CHECKED(applier.check_keys());
  return applier.take();
}

void apply_flags(const CLI::App& app, std::vector<Setting>& settings) {
  for (Setting& setting : settings) {
    if (!setting.verb.empty()) continue;
    const CLI::Option& option = *app.get_option("--" + setting.flag);
    if (option.count() == 0) continue;
    setting.value = is_switch(option) ? (option.as<bool>() ? "true" : "false")
                                      : fmt::format("{}", fmt::join(option.reduced_results(), ","));
    setting.origin = "flag";
  }
}

}  // namespace kvasir::cli
