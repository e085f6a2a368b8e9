#include "cli/weights_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

constexpr std::chrono::milliseconds kWeightsLookInterval{500};

struct MappedFile {
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
};

// Nothing: there is no such file.
std::optional<MappedFile> file_at(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return MappedFile{.path = path,
                    .device = status.st_dev,
                    .inode = status.st_ino,
                    .size_bytes = status.st_size,
                    .modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// The files that a model's folder leads to: in a cache of the hub they are links to others.
std::vector<std::string> linked_files(const std::filesystem::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    paths.push_back(std::filesystem::canonical(it->path(), ignored).string());
  }
  return paths;
}

// The files in /proc/self/maps, whose lines end with a path, that belong to the model: those beside its file, or
// those of its folder.
std::vector<MappedFile> mapped_files_of(const std::filesystem::path& model) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  const std::vector<std::string> in_folder = is_folder ? linked_files(model) : std::vector<std::string>();
  const auto belongs = [&](const std::string& path) {
    if (is_folder) return std::ranges::find(in_folder, path) != in_folder.end();
    return std::filesystem::path(path).parent_path() == model.parent_path();
  };
  std::vector<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t slash = line.find('/');
    if (slash == line.npos) continue;
    std::string path = line.substr(slash);
    if (!belongs(path)) continue;
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  }
  std::vector<MappedFile> files;
  for (const std::string& path : paths) {
    if (auto file = file_at(path)) files.push_back(*std::move(file));
  }
  return files;
}

// A shorter file is the SIGBUS handler's.
bool was_written(const MappedFile& file) {
  const auto now = file_at(file.path);
  if (!now || now->device != file.device || now->inode != file.inode) return false;
  return now->size_bytes > file.size_bytes ||
         (now->size_bytes == file.size_bytes && now->modified_ns != file.modified_ns);
}

void watch(const std::stop_token& stop, const std::vector<MappedFile>& files) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, kWeightsLookInterval, [&stop] { return stop.stop_requested(); })) {
    const auto written = std::ranges::find_if(files, was_written);
    if (written == files.end()) continue;
    say(fmt::format("kvasir: {}: changed since it was opened (to replace a file in use, rename another to its name)",
                    printable_line(written->path)));
    std::_Exit(kExitBadFile);
  }
}

}  // namespace

WeightsWatch::WeightsWatch(const std::string& model_path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(model_path, error);
  if (error) return;
  std::vector<MappedFile> files = mapped_files_of(whole);
  if (files.empty()) return;
  thread_ = std::jthread([files = std::move(files)](const std::stop_token& stop) { watch(stop, files); });
}

}  // namespace kvasir::cli
