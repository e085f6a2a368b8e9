#include "base/file_watch.h"

#include <utility>

namespace kvasir {
namespace {

constexpr std::chrono::milliseconds kLookInterval{500};

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths)
    : paths_(std::move(paths)), seen_(stamps()), looked_(std::chrono::steady_clock::now()) {
  accept();
}

bool FileWatch::has_changed(TimePoint now) {
  if (now - looked_ < kLookInterval) return false;
  looked_ = now;
  seen_ = stamps();
  return seen_ != accepted_;
}

bool FileWatch::reject() { return std::exchange(tried_, seen_) != seen_; }

std::vector<FileStamp> FileWatch::stamps() const {
  std::vector<FileStamp> stamps;
  for (const std::string& path : paths_) stamps.push_back(FileStamp::of(path));
  return stamps;
}

}  // namespace kvasir
