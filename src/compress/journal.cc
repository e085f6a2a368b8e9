#include "compress/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/printable.h"

namespace kvasir::compress {
namespace {

constexpr std::string_view kFirstWord = "kvasir-quantize-1";

std::unexpected<Error> failed(const std::string& path) {
  return make_error(ErrorKind::kMachine, fmt::format("{}: cannot be written: {}", printable_line(path), std::strerror(errno)));
}

}  // namespace

Result<Journal> Journal::open(const std::string& path, const std::string& fingerprint) {
  Journal journal;
  journal.path_ = path;
  const std::string first = fmt::format("{} {}", kFirstWord, fingerprint);
  std::string text;
  {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream all;
    if (file) all << file.rdbuf();
    text = std::move(all).str();
  }
  if (!text.empty() && !text.starts_with(kFirstWord)) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: is there and is no journal of quantize: it stays as it is", printable_line(path)), "OUT");
  }
  const bool goes_on = text.starts_with(first + "\n");
  journal.began_anew_ = !text.empty() && !goes_on;
  if (goes_on) {
    text.resize(text.rfind('\n') + 1);  // a line that was cut
    std::istringstream lines(text.substr(first.size() + 1));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      FinishedTensor finished;
      std::string name;
      if (words >> finished.sha256 >> finished.error >> name) journal.finished_[name] = finished;
    }
  }
  journal.file_.reset(std::fopen(path.c_str(), goes_on ? "r+b" : "wb"));
  if (journal.file_ == nullptr) return failed(path);
  if (goes_on) {
    const bool is_cut = ::ftruncate(::fileno(journal.file_.get()), static_cast<off_t>(text.size())) == 0;
    if (!is_cut || std::fseek(journal.file_.get(), 0, SEEK_END) != 0) return failed(path);
  } else if (std::fprintf(journal.file_.get(), "%s\n", first.c_str()) < 0 || std::fflush(journal.file_.get()) != 0) {
    return failed(path);
  }
  return journal;
}

Status Journal::add(const std::string& tensor, const FinishedTensor& finished) {
  const std::string line = fmt::format("{} {} {}\n", finished.sha256, finished.error, tensor);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) return failed(path_);
  return {};
}

}  // namespace kvasir::compress
