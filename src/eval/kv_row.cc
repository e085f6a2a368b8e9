#include "eval/kv_row.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::eval {
namespace {

constexpr std::string_view kHeader =
    "suite,ctx,item,policy,budget,bytes_share,bytes_share_peak,tokens,nll,full_nll,kl,top1,found,full_found";

std::string to_line(const KvRow& row) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}", row.suite, row.ctx_tokens, row.item,
                     row.policy, row.budget, row.bytes_share, row.bytes_share_peak, row.num_tokens, row.nll,
                     row.full_nll, row.kl, row.top1, row.found, row.full_found);
}

// Cells of a line, one after the other.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  void read(std::string& text) { text = next(); }
  void read(auto& number) {
    const std::string_view cell = next();
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    is_good_ = is_good_ && error == std::errc() && end == cell.data() + cell.size();
  }
  bool is_good() const { return is_good_ && is_at_end_; }

 private:
  std::string_view next() {
    const std::size_t comma = rest_.find(',');
    const std::string_view cell = rest_.substr(0, comma);
    is_good_ = is_good_ && !is_at_end_;
    is_at_end_ = comma == std::string_view::npos;
    rest_.remove_prefix(is_at_end_ ? rest_.size() : comma + 1);
    return cell;
  }

  std::string_view rest_;
  bool is_good_ = true, is_at_end_ = false;
};

std::optional<KvRow> from_line(std::string_view line) {
  KvRow row;
  LineReader reader(line);
  reader.read(row.suite);
  reader.read(row.ctx_tokens);
  reader.read(row.item);
  reader.read(row.policy);
  for (double* number : {&row.budget, &row.bytes_share, &row.bytes_share_peak}) reader.read(*number);
  reader.read(row.num_tokens);
  for (double* number : {&row.nll, &row.full_nll, &row.kl, &row.top1}) reader.read(*number);
  reader.read(row.found);
  reader.read(row.full_found);
  return reader.is_good() ? std::optional(std::move(row)) : std::nullopt;
}

}  // namespace

Result<KvRowFile> KvRowFile::open(const std::string& path, const std::string& subject) {
  std::string text;
  constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
  if (auto existing = read_text_file(path, kMaxBytes)) text = std::move(*existing);
  const std::string head = fmt::format("# {}\n{}\n", printable_line(subject), kHeader);
  if (!text.empty() && !text.starts_with(head)) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: does not hold rows of {}", printable_line(path),
                                                       printable_line(subject)));
  }
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("{}: cannot be written: {}", printable_line(path), std::strerror(errno)));
  }
  KvRowFile rows(path, file);
  if (text.empty()) {
    KVASIR_CHECKED(rows.write(head));
    return rows;
  }
  std::string_view rest = std::string_view(text).substr(head.size());
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      KVASIR_CHECKED(rows.write("\n"));  // behind a row that was cut off: it is measured again
      break;
    }
    auto row = from_line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!row) continue;
    rows.keys_.insert(row->key());
    rows.rows_.push_back(std::move(*row));
  }
  return rows;
}

Status KvRowFile::add(KvRow row) {
  KVASIR_CHECKED(write(to_line(row) + "\n"));
  keys_.insert(row.key());
  rows_.push_back(std::move(row));
  return {};
}

Status KvRowFile::write(std::string_view text) {
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0;
  if (is_written) return {};
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot be written: {}", printable_line(path_), std::strerror(errno)));
}

}  // namespace kvasir::eval
