#include "store/hub/hub_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kMostNameBytes = 96;
constexpr std::size_t kMostRevisionBytes = 200;
constexpr std::size_t kCommitDigits = 40;

bool is_hub_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

// The hub's own rule: "--" and ".." are in no name, and neither end is a dash or a dot.
bool is_hub_word(std::string_view word) {
  const auto is_mark = [](char c) { return c == '-' || c == '.'; };
  return !word.empty() && word.size() <= kMostNameBytes && std::ranges::all_of(word, is_hub_character) &&
         !is_mark(word.front()) && !is_mark(word.back()) && word.find("--") == word.npos &&
         word.find("..") == word.npos;
}

bool is_revision(std::string_view revision) {
  const auto allowed = [](char c) { return is_hub_character(c) || c == '/' || c == '+'; };
  return revision.size() <= kMostRevisionBytes && std::ranges::all_of(revision, allowed) &&
         is_inside_path(revision);
}

std::unexpected<Error> wrong_hub_name(std::string_view text, std::string_view problem) {
  return make_error(ErrorKind::kUsage,
                    fmt::format("{}: {}; a model of the hub is hf:OWNER/NAME[@REVISION][:FILE]",
                                printable_line(text), problem));
}

}  // namespace

bool is_inside_path(std::string_view path) {
  const auto is_wrong = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; };
  if (std::ranges::any_of(path, is_wrong)) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_commit(std::string_view text) {
  return text.size() == kCommitDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

const std::string& HubName::revision_or_main() const {
  static const std::string main = "main";
  return revision.empty() ? main : revision;
}

std::string HubName::text() const {
  return repository() + (revision.empty() ? "" : "@" + revision) + (file.empty() ? "" : ":" + file);
}

Result<HubName> HubName::parse(std::string_view text) {
  if (!matches(text)) return wrong_hub_name(text, "does not begin with hf:");
  std::string_view rest = text.substr(3);
  if (rest.starts_with("//") || rest.contains("://")) return wrong_hub_name(text, "an address is no name");
  HubName result;
  if (const std::size_t colon = rest.find(':'); colon != rest.npos) {
    result.file = rest.substr(colon + 1);
    if (result.file.empty()) return wrong_hub_name(text, "no file follows the second colon");
    if (!is_inside_path(result.file)) return wrong_hub_name(text, "the file is no path in a repository");
    rest = rest.substr(0, colon);
  }
  if (const std::size_t at = rest.find('@'); at != rest.npos) {
    result.revision = rest.substr(at + 1);
    if (result.revision.empty()) return wrong_hub_name(text, "no revision follows the @");
    if (!is_revision(result.revision))
      return wrong_hub_name(text, "the revision is no name of a branch, tag or commit");
    rest = rest.substr(0, at);
  }
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos) return wrong_hub_name(text, "the owner or the name is missing");
  result.owner = rest.substr(0, slash);
  result.name = rest.substr(slash + 1);
  if (!is_hub_word(result.owner)) return wrong_hub_name(text, "the owner is no name of the hub");
  if (!is_hub_word(result.name)) return wrong_hub_name(text, "the model is no name of the hub");
  return result;
}

}  // namespace kvasir::store
