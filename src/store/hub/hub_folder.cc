#include "store/hub/hub_folder.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/text_file.h"
#include "store/hub/hub_selection.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelPrefix = "models--";
constexpr std::size_t kFewestCommitDigits = 7;
constexpr std::size_t kMostIndexBytes = std::size_t{64} << 20;

// Names of a folder's entries, sorted; none when it cannot be read.
std::vector<std::string> entries_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    names.push_back(it->path().filename().native());
  }
  std::ranges::sort(names);
  return names;
}

// Paths of the files below `folder` relative to it, sorted. Links count as what they lead to.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;
    if (it->is_regular_file(gone) && !gone) paths.push_back(it->path().lexically_relative(folder).native());
  }
  std::ranges::sort(paths);
  return paths;
}

HubModelHere model_of(const HubName& name, const fs::path& folder, const HubSelection& selection) {
  HubModelHere model{.name = name, .path = {}, .files = {}, .size_bytes = 0};
  model.path = selection.model_path.empty() ? folder : folder / selection.model_path;
  for (const std::string& path : selection.paths) {
    std::error_code ignored;
    const std::uintmax_t size = fs::file_size(folder / path, ignored);
    if (!ignored) model.size_bytes += static_cast<std::int64_t>(size);
    model.files.push_back(folder / path);
  }
  return model;
}

// The model that the name means in a snapshot, whole; nothing when it is not there.
std::optional<HubModelHere> model_in(const HubName& name, const fs::path& folder) {
  const std::vector<std::string> paths = files_below(folder);
  auto selection = select_files(name, paths);
  if (!selection) return std::nullopt;
  if (!selection->index_path.empty()) {
    const auto index = read_text_file((folder / selection->index_path).native(), kMostIndexBytes);
    if (!index || !add_shards(name, *index, paths, *selection)) return std::nullopt;
  }
  return model_of(name, folder, *selection);
}

std::optional<HubName> name_of_folder(std::string_view folder) {
  if (!folder.starts_with(kModelPrefix)) return std::nullopt;
  folder.remove_prefix(kModelPrefix.size());
  const std::size_t at = folder.find("--");
  if (at == folder.npos) return std::nullopt;
  const auto name = HubName::parse("hf:" + std::string(folder.substr(0, at)) + "/" +
                                   std::string(folder.substr(at + 2)));
  return name ? std::optional(*name) : std::nullopt;
}

}  // namespace

fs::path HubFolder::repository(const HubName& name) const {
  return root_ / (std::string(kModelPrefix) + name.owner + "--" + name.name);
}

fs::path HubFolder::snapshot(const HubName& name, const std::string& commit) const {
  return repository(name) / "snapshots" / commit;
}

std::string HubFolder::commit_of(const HubName& name) const {
  const auto text = read_text_file((repository(name) / "refs" / name.revision_or_main()).native());
  const std::string commit = text ? text->substr(0, text->find_last_not_of(" \r\n") + 1) : std::string();
  return is_commit(commit) ? commit : std::string();
}

// Those that the revision may mean, the likeliest first.
std::vector<std::string> HubFolder::commits_of(const HubName& name) const {
  std::vector<std::string> commits;
  if (const std::string commit = commit_of(name); !commit.empty()) commits.push_back(commit);
  std::vector<std::pair<fs::file_time_type, std::string>> others;
  for (std::string& commit : entries_of(repository(name) / "snapshots")) {
    const bool is_meant = name.revision.empty() ||
                          (name.revision.size() >= kFewestCommitDigits && commit.starts_with(name.revision));
    std::error_code ignored;
    if (is_commit(commit) && is_meant && std::ranges::find(commits, commit) == commits.end()) {
      others.emplace_back(fs::last_write_time(snapshot(name, commit), ignored), std::move(commit));
    }
  }
  std::ranges::sort(others, std::greater());
  for (auto& [time, commit] : others) commits.push_back(std::move(commit));
  return commits;
}

std::optional<HubModelHere> HubFolder::find(const HubName& name) const {
  if (root_.empty()) return std::nullopt;
  for (const std::string& commit : commits_of(name)) {
    if (auto model = model_in(name, snapshot(name, commit))) return model;
  }
  return std::nullopt;
}

std::vector<HubModelHere> HubFolder::models_of_snapshot(const HubName& name,
                                                        const std::string& commit) const {
  const fs::path folder = snapshot(name, commit);
  std::vector<std::string> ggufs = gguf_models(files_below(folder));
  std::vector<HubModelHere> models;
  HubName of_model = name;
  if (commit_of(name) != commit) of_model.revision = commit.substr(0, kFewestCommitDigits);
  if (ggufs.empty()) ggufs.emplace_back();  // the folder itself
  for (const std::string& gguf : ggufs) {
    of_model.file = gguf;
    if (auto model = model_in(of_model, folder)) models.push_back(std::move(*model));
  }
  return models;
}

std::vector<HubModelHere> HubFolder::list() const {
  std::vector<HubModelHere> models;
  if (root_.empty()) return models;
  for (const std::string& folder : entries_of(root_)) {
    const auto name = name_of_folder(folder);
    if (!name) continue;
    for (const std::string& commit : entries_of(repository(*name) / "snapshots")) {
      if (!is_commit(commit)) continue;
      for (HubModelHere& model : models_of_snapshot(*name, commit)) models.push_back(std::move(model));
    }
  }
  return models;
}

}  // namespace kvasir::store
