#include "cli/chat/input_completion.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/env.h"
#include "base/printable.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxFiles = 1000;  // of a folder that are looked at

std::vector<std::string> complete_file(std::string_view typed) {
  namespace fs = std::filesystem;
  const std::size_t slash = typed.rfind('/');
  const std::string folder(slash == typed.npos ? std::string_view() : typed.substr(0, slash + 1));
  const std::string_view begin = slash == typed.npos ? typed : typed.substr(slash + 1);
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : expand_home(folder), error), end;
       !error && entry != end && found.size() < kMaxFiles; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_hidden = name.starts_with('.') && !begin.starts_with('.');
    // A name that cannot be shown as it is cannot be typed as it is.
    if (!name.starts_with(begin) || is_hidden || printable(name, name.size()) != name) continue;
    std::error_code ignored;
    found.push_back(folder + name + (entry->is_directory(ignored) ? "/" : ""));
  }
  return found;
}

std::vector<std::string> beginning_with(std::string_view typed, std::span<const std::string> words) {
  std::vector<std::string> found;
  for (const std::string& word : words) {
    if (word.starts_with(typed)) found.push_back(word);
  }
  return found;
}

}  // namespace

Completions complete_input(std::string_view line, std::span<const CompletableCommand> commands) {
  Completions completions;
  if (!line.starts_with('/')) return completions;
  const std::size_t space = line.find(' ');
  if (space == line.npos) {
    for (const CompletableCommand& command : commands) {
      if (command.name.starts_with(line)) completions.candidates.emplace_back(command.name);
    }
  } else {
    const auto command = std::ranges::find(commands, line.substr(0, space), &CompletableCommand::name);
    if (command == commands.end()) return completions;
    completions.begin = std::min(line.find_first_not_of(' ', space), line.size());
    const std::string_view typed = line.substr(completions.begin);
    completions.candidates =
        command->takes_file ? complete_file(typed) : beginning_with(typed, command->arguments);
  }
  std::ranges::sort(completions.candidates);
  return completions;
}

std::string common_prefix(std::span<const std::string> candidates) {
  if (candidates.empty()) return {};
  std::string_view prefix = candidates[0];
  for (const std::string_view candidate : candidates) {
    const auto end = std::ranges::mismatch(prefix, candidate).in1;
    prefix = prefix.substr(0, static_cast<std::size_t>(end - prefix.begin()));
  }
  // Not in the middle of a character.
  while (!prefix.empty() && prefix.size() < candidates[0].size() &&
         (static_cast<unsigned char>(candidates[0][prefix.size()]) & 0xC0u) == 0x80) {
    prefix.remove_suffix(1);
  }
  return std::string(prefix);
}

std::string expand_home(std::string_view path) {
  const auto home = env_string("HOME");
  if (!home || !path.starts_with("~/")) return std::string(path);
  return *home + std::string(path.substr(1));
}

}  // namespace kvasir::cli
