#include "cli/settings.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

namespace kvasir::cli {
namespace {

struct SettingsFile {
  std::string path;
  toml::table table;
};

std::optional<std::string> find_file() {
  std::error_code ignored;
  if (const char* named = std::getenv("KVASIR_CONFIG")) return named;
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

Result<std::optional<SettingsFile>> read_file() {
  const auto path = find_file();
  if (!path) return std::optional<SettingsFile>();
  try {
    return SettingsFile{*path, toml::parse_file(*path)};
  } catch (const toml::parse_error& error) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}:{}: {}", *path, error.source().begin.line, error.description()));
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

// Applies one source's value; a value that the flag refuses is an Error naming the source.
Status set_default(CLI::Option& option, const std::string& value, const std::string& origin) {
  try {
    if (option.get_expected_max() == 0) {  // a switch: its callback wants to be counted
      if (value == "true" || value == "1") option.default_val("true");
    } else {
      option.default_val(value);
    }
    return {};
  } catch (const CLI::Error& error) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}: --{} does not take '{}'", origin, option.get_lnames()[0], value));
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
      KVASIR_CHECKED(apply(*verb, path.empty() ? verb->get_name() : path + "." + verb->get_name()));
    }
    return {};
  }

  // Every key of the file must have been some flag's.
  Status check_keys() const { return file_ ? check_table(file_->table, "") : Status(); }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  static bool is_about_the_program(const std::string& flag) { return flag == "help" || flag == "version"; }

  Status check_table(const toml::table& table, const std::string& prefix) const {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const toml::table* below = node.as_table()) {
        KVASIR_CHECKED(check_table(*below, name + "."));
      } else if (!used_.contains(name)) {
        return make_error(ErrorKind::kUsage, fmt::format("{}: no flag has the name '{}'", file_->path, name));
      }
    }
    return {};
  }

  Status apply_option(CLI::Option& option, const std::string& path) {
    const std::string flag = option.get_lnames()[0];
    Setting setting{path, flag, "", "default"};
    const std::string variable = variable_of(flag);
    const char* from_environment = std::getenv(variable.c_str());
    const auto from_file = find_in_file(path, flag);
    if (from_environment != nullptr) {
      setting.origin = variable;
      KVASIR_CHECKED(set_default(option, from_environment, variable));
    } else if (from_file) {
      setting.origin = file_->path;
      KVASIR_CHECKED(set_default(option, *from_file, file_->path));
    }
    const bool is_switch = option.get_expected_max() == 0;
    setting.value = is_switch && option.get_default_str().empty() ? "false" : option.get_default_str();
    settings_.push_back(std::move(setting));
    return {};
  }

  // The verb's own table before the file's top level; both count as used.
  std::optional<std::string> find_in_file(const std::string& path, const std::string& flag) {
    if (!file_) return std::nullopt;
    std::optional<std::string> value;
    for (const std::string& key : {path.empty() ? flag : path + "." + flag, flag}) {
      auto found = text_of(file_->table.at_path(key).node());
      if (!found) continue;
      used_.insert(key);
      if (!value) value = std::move(found);
    }
    return value;
  }

  const std::optional<SettingsFile>& file_;
  std::vector<Setting> settings_;
  std::set<std::string> used_;
};

}  // namespace

const CLI::App* find_verb(const CLI::App& app, std::string_view name) {
  const auto verbs = app.get_subcommands([name](const CLI::App* verb) { return verb->get_name() == name; });
  return verbs.empty() ? nullptr : verbs.front();
}

Result<std::vector<Setting>> apply_settings(CLI::App& app) {
  KVASIR_TRY(const auto file, read_file());
  Applier applier(file);
  KVASIR_CHECKED(applier.apply(app, ""));
  KVASIR_CHECKED(applier.check_keys());
  return applier.take();
}

}  // namespace kvasir::cli
