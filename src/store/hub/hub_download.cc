#include "store/hub/hub_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "store/hub/backoff.h"

namespace kvasir::store {
namespace {

constexpr std::chrono::milliseconds kReportInterval(100);
constexpr std::int32_t kMostTargetHops = 10;
constexpr std::int32_t kMostRenewals = 5;  // without a byte in between

struct ContentRange {
  std::int64_t first = -1;  // -1: "*"
  std::int64_t last = -1;
  std::int64_t total = -1;  // -1: "*"
};

// Reads a number and takes it off the text; nothing when there is none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// "bytes 0-99/1000", "bytes */1000".
std::optional<ContentRange> parse_content_range(std::string_view text) {
  ContentRange range;
  if (!take_word(text, "bytes ")) return std::nullopt;
  if (!take_word(text, "*")) {
    const auto first = take_number(text);
    if (!first || !take_word(text, "-")) return std::nullopt;
    const auto last = take_number(text);
    if (!last) return std::nullopt;
    range.first = *first;
    range.last = *last;
  }
  if (!take_word(text, "/")) return std::nullopt;
  if (text == "*") return range;
  const auto total = take_number(text);
  if (!total || !text.empty()) return std::nullopt;
  range.total = *total;
  return range;
}

}  // namespace

// One connection: fetches pieces until none is left or something is wrong.
class HubDownload::Connection {
 public:
  // `whole`: it asks for the whole file. Another one may find that the server knows no ranges before this one begins.
  Connection(HubDownload& download, bool whole)
      : download_(download),
        keep_running_([&download] { return download.is_running() && !download.whole_files_only_; }),
        whole_keep_running_([&download] { return download.is_running(); }),
        client_(download.settings_, whole ? whole_keep_running_ : keep_running_),
        backoff_(whole ? whole_keep_running_ : keep_running_),
        whole_(whole) {}

  void run() {
    for (std::int32_t piece = download_.take_piece(); piece >= 0; piece = download_.take_piece()) {
      piece_ = piece;
      const Status status = fetch_piece();
      if (!going_on()) return;  // also the cause of an error then
      if (!status) return download_.stop_with(status.error());
    }
  }

 private:
  PartialFile& partial() { return download_.partial_; }
  bool going_on() const { return whole_ ? whole_keep_running_() : keep_running_(); }
  std::int64_t position() { return partial().piece_begin(piece_) + partial().piece_done(piece_); }
  bool is_piece_whole() { return position() == partial().piece_end(piece_); }
  bool wants_all() { return position() == 0 && partial().piece_end(piece_) == partial().size_bytes(); }

  std::unexpected<Error> wrong(std::string_view problem) const {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: {}: {}", download_.name_.repository(),
                                                       printable_line(download_.file_.path), problem));
  }

  Status fetch_piece() {
    num_renewals_ = 0;
    while (going_on() && !is_piece_whole()) {
      if (whole_ && position() > 0) KVASIR_CHECKED(partial().start_anew(true));
      KVASIR_CHECKED(fetch_once());
    }
    return {};
  }

  // One request with its redirects, and what it means.
  Status fetch_once() {
    const SharedTarget shared = download_.target();
    HubTarget target = shared.target;
    failure_ = {};
    const std::int64_t before = position();
    HttpResponse response;
    for (std::int32_t hop = 0;; ++hop) {
      if (hop > kMostTargetHops)
        return wrong(fmt::format("the server redirects more than {} times", kMostTargetHops));
      const std::string range = wants_all()
                                    ? ""
                                    : fmt::format("{}-{}", position(), partial().piece_end(piece_) - 1);
      response = client_.get(target, range, sink());
      if (response.status < 300 || response.status >= 400) break;
      const std::string next = resolve_url(target.url, response.header("location"));
      if (next.empty()) return wrong("the server redirects to no address");
      target = client_.target_of(next);
    }
    if (failure_) return std::unexpected(*failure_);
    if (!going_on()) return {};
    if (position() > before) {
      num_renewals_ = 0;
      if (!whole_) {
        backoff_.reset();
        return {};  // a drop: the next request goes on from here
      }
    }
    return is_piece_whole() ? Status() : judge_failure(response, target, shared.generation);
  }

  BodySink sink() {
    return {.begin = [this](const HttpResponse& response) { return accept(response); },
            .take = [this](std::span<const std::byte> bytes) { return take(bytes); }};
  }

  bool refuse(std::string_view problem) {
    failure_ = wrong(problem).error();
    return false;
  }

  // Whether the body that follows is the bytes that were asked for.
  bool accept(const HttpResponse& response) {
    const std::int64_t size = partial().size_bytes();
    if (response.status == 200) {
      if (!wants_all()) {
        download_.whole_files_only_ = true;
        return false;
      }
      const std::string_view length = response.header("content-length");
      if (length.empty() || length == std::to_string(size)) return true;
      return refuse(fmt::format("the server sends {} bytes, the hub says {}", printable(length), size));
    }
    if (response.status != 206) return false;
    const auto range = parse_content_range(response.header("content-range"));
    if (!range || range->first < 0) return refuse("the server sends a part without saying which");
    if (range->total >= 0 && range->total != size) {
      return refuse(fmt::format("the server's file has {} bytes, the hub says {}", range->total, size));
    }
    if (range->first != position() || range->last >= partial().piece_end(piece_)) {
      return refuse(fmt::format("the server sends the bytes {}-{} instead of {}-{}", range->first,
                                range->last, position(), partial().piece_end(piece_) - 1));
    }
    return true;
  }

  bool take(std::span<const std::byte> bytes) {
    if (static_cast<std::int64_t>(bytes.size()) > partial().piece_end(piece_) - position()) {
      return refuse("the server sends more bytes than it was asked for");
    }
    if (const Status status = partial().write(piece_, bytes); !status) {
      failure_ = status.error();
      return false;
    }
    return true;
  }

  // A request that brought nothing new.
  Status judge_failure(const HttpResponse& response, const HubTarget& target, std::int32_t generation) {
    if (response.status == 416) {
      const auto range = parse_content_range(response.header("content-range"));
      if (range && range->total >= 0 && range->total != partial().size_bytes()) {
        return wrong(fmt::format("the server's file has {} bytes, the hub says {}", range->total,
                                 partial().size_bytes()));
      }
      return wrong("the server refuses a range inside of the file (416)");
    }
    const bool may_have_expired = target.is_foreign && response.status >= 400 && response.status <= 410 &&
                                  response.status != 408;
    if (may_have_expired) {
      if (++num_renewals_ > kMostRenewals) {
        return wrong(fmt::format("{} refuses access ({}), also at new addresses", host_of(target.url),
                                 response.status));
      }
      return download_.renew_target(client_, generation);
    }
    const bool is_short = response.end == HttpResponse::End::kWhole &&
                          (response.status == 200 || response.status == 206);
    if (is_short || may_try_again(response)) {
      const Backoff::Verdict verdict = backoff_.wait(response);
      if (verdict != Backoff::Verdict::kGiveUp) return {};
    }
    return std::unexpected(give_up(response, target));
  }

  Error give_up(const HttpResponse& response, const HubTarget& target) const {
    if (!target.is_foreign && response.end != HttpResponse::End::kBroken && response.status >= 400) {
      return client_.explain(response, download_.name_, download_.file_.path);
    }
    const std::string host = host_of(target.url);
    std::string problem = fmt::format("{} answers with status {}", host, response.status);
    if (response.end == HttpResponse::End::kBroken) problem = fmt::format("{}: {}", host, response.failure);
    if (whole_) problem += "; the server knows no ranges, so that each try starts at the beginning";
    return {ErrorKind::kMachine, wrong(problem).error().message};
  }

  HubDownload& download_;
  std::function<bool()> keep_running_;
  std::function<bool()> whole_keep_running_;
  HubClient client_;
  Backoff backoff_;
  bool whole_;  // asks for the whole file, from its beginning
  std::int32_t piece_ = 0;
  std::int32_t num_renewals_ = 0;
  std::optional<Error> failure_;
};

Status HubDownload::run(const std::function<bool(std::int64_t)>& report) {
  if (partial_.is_whole()) return {};
  {
    HubClient client(settings_, [&] { return report(partial_.bytes_done()); });
    KVASIR_TRY(target_.target, client.locate(name_, commit_, file_));
  }
  KVASIR_CHECKED(run_connections(std::min(kMostConnections, partial_.num_pieces()), false, report));
  if (!whole_files_only_ || partial_.is_whole()) return {};
  KVASIR_CHECKED(partial_.start_anew(true));
  return run_connections(1, true, report);
}

Status HubDownload::run_connections(std::int32_t count, bool whole, const std::function<bool(std::int64_t)>& report) {
  next_piece_ = 0;
  num_running_ = count;
  std::vector<std::jthread> threads;
  for (std::int32_t i = 0; i < count; ++i) {
    threads.emplace_back([this, whole] {
      Connection(*this, whole).run();
      const std::lock_guard lock(mutex_);
      --num_running_;
      ended_.notify_all();
    });
  }
  std::unique_lock lock(mutex_);
  while (num_running_ > 0) {
    ended_.wait_for(lock, kReportInterval);
    lock.unlock();
    if (!report(partial_.bytes_done())) stop_with({ErrorKind::kCancelled, "interrupted"});
    lock.lock();
  }
  return result_;
}

std::int32_t HubDownload::take_piece() {
  const std::lock_guard lock(mutex_);
  while (next_piece_ < partial_.num_pieces()) {
    const std::int32_t piece = next_piece_++;
    if (partial_.piece_begin(piece) + partial_.piece_done(piece) < partial_.piece_end(piece)) return piece;
  }
  return -1;
}

void HubDownload::stop_with(Error error) {
  const std::lock_guard lock(mutex_);
  if (result_) result_ = std::unexpected(std::move(error));  // the first says most
  is_stopped_ = true;
}

HubDownload::SharedTarget HubDownload::target() {
  const std::lock_guard lock(mutex_);
  return target_;
}

Status HubDownload::renew_target(HubClient& client, std::int32_t generation) {
  if (target().generation != generation) return {};
  KVASIR_TRY(HubTarget renewed, client.locate(name_, commit_, file_));
  const std::lock_guard lock(mutex_);
  if (target_.generation == generation) target_ = {std::move(renewed), generation + 1};
  return {};
}

}  // namespace kvasir::store
