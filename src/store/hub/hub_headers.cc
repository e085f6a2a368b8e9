#include "store/hub/hub_headers.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "io/gguf_reader.h"
#include "store/file_error.h"
#include "store/hub/hub_client.h"
#include "store/hub/hub_selection.h"
#include "store/store_folder.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstBytes = std::int64_t{1} << 20;
constexpr std::int64_t kMostHeaderBytes = std::int64_t{128} << 20;
constexpr std::size_t kLengthBytes = 8;  // of a safetensors header's length

// Of one model at one commit.
class HeaderFetch {
 public:
  HeaderFetch(const HubSettings& settings, const HubName& name, const fs::path& folder, const TransferEvents& events)
      : name_(name),
        folder_(folder),
        client_(settings, [this, &events] { return events.progress({"reading headers", num_bytes_, 0}); }) {}

  // What opens the model, in the folder; and the license.
  Result<std::pair<fs::path, std::string>> run() {
    KVASIR_TRY(const HubCommit commit, client_.resolve_revision(name_));
    commit_ = commit.sha;
    KVASIR_TRY(const std::vector<HubFile> files, client_.list_files(name_, commit_));
    const auto listed = [&](const std::string& path) { return std::ranges::find(files, path, &HubFile::path); };
    std::vector<std::string> paths;
    for (const HubFile& file : files) paths.push_back(file.path);
    KVASIR_TRY(HubSelection selection, select_files(name_, paths));
    if (!selection.index_path.empty()) {
      KVASIR_TRY(const std::string index, client_.read_file(name_, commit_, *listed(selection.index_path)));
      KVASIR_CHECKED(add_shards(name_, index, paths, selection));
    }
    for (const std::string& path : selection.paths) KVASIR_CHECKED(fetch_file(*listed(path)));
    return std::pair(selection.model_path.empty() ? folder_ : folder_ / selection.model_path, commit.license);
  }

 private:
  Status fetch_file(const HubFile& file) {
    if (file.path.ends_with(".gguf")) return fetch_gguf(file);
    if (file.path.ends_with(".safetensors")) return fetch_safetensors(file);
    if (file.path.ends_with(".model")) return {};  // of another library; nobody here reads it
    KVASIR_TRY(const std::string content, client_.read_file(name_, commit_, file));
    num_bytes_ += std::ssize(content);
    return write_file(file, content);
  }

  // Adds the bytes up to `end`, or to the file's end.
  Status extend(const HubFile& file, std::int64_t end, std::string& bytes) {
    const std::int64_t begin = std::ssize(bytes);
    end = std::min(end, file.size_bytes);
    if (end <= begin) return {};
    KVASIR_TRY(const std::string more, client_.read_range(name_, commit_, file, begin, end - begin));
    bytes += more;
    num_bytes_ += std::ssize(more);
    return {};
  }

  // A header does not say how long it is, so more is asked for until it is whole. One that is broken stays so, and
  // whoever opens the file says how.
  Status fetch_gguf(const HubFile& file) {
    std::string bytes;
    for (std::int64_t end = kFirstBytes;; end *= 2) {
      KVASIR_CHECKED(extend(file, end, bytes));
      const bool is_all = std::ssize(bytes) == file.size_bytes || end >= kMostHeaderBytes;
      if (is_all || !bytes.starts_with("GGUF") || io::has_whole_header(std::as_bytes(std::span(bytes)))) return write_file(file, bytes);
    }
  }

  Status fetch_safetensors(const HubFile& file) {
    std::string bytes;
    KVASIR_CHECKED(extend(file, kFirstBytes, bytes));
    std::uint64_t length = 0;
    if (bytes.size() >= kLengthBytes) std::memcpy(&length, bytes.data(), sizeof length);
    if (length < static_cast<std::uint64_t>(kMostHeaderBytes)) {
      KVASIR_CHECKED(extend(file, static_cast<std::int64_t>(kLengthBytes + length), bytes));
    }
    return write_file(file, bytes);
  }

  // As long as on the hub; the rest is a hole.
  Status write_file(const HubFile& file, std::string_view bytes) {
    const fs::path path = folder_ / file.path;
    KVASIR_CHECKED(make_store_folder(path.parent_path()));
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), std::ssize(bytes));
    out.close();
    std::error_code failure;
    if (out) fs::resize_file(path, static_cast<std::uintmax_t>(file.size_bytes), failure);
    if (!out || failure) return file_error(path.native(), "write", failure ? failure.value() : EIO);
    return {};
  }

  const HubName& name_;
  const fs::path& folder_;
  std::int64_t num_bytes_ = 0;
  HubClient client_;
  std::string commit_;
};

}  // namespace

Result<HubHeaders> HubHeaders::fetch(const HubSettings& settings, const HubName& name, const TransferEvents& events) {
  if (settings.offline) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{} is not on this machine, and HF_HUB_OFFLINE is set", name.text()));
  }
  std::error_code failure;
  std::string pattern = (fs::temp_directory_path(failure) / "kvasir-headers-XXXXXX").native();
  if (failure || ::mkdtemp(pattern.data()) == nullptr) return file_error(pattern, "create", failure ? failure.value() : errno);
  HubHeaders headers{fs::path(pattern)};
  HeaderFetch fetch(settings, name, headers.folder_, events);
  KVASIR_TRY(auto found, fetch.run());
  headers.path_ = std::move(found.first);
  headers.license_ = std::move(found.second);
  return headers;
}

HubHeaders::HubHeaders(HubHeaders&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), path_(std::move(other.path_)), license_(std::move(other.license_)) {}

HubHeaders::~HubHeaders() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace kvasir::store
