#include "store/hub/hub_client.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "store/hub/backoff.h"

namespace kvasir::store {
namespace {

namespace dom = simdjson::dom;

constexpr std::int32_t kMostRedirects = 10;
constexpr std::int32_t kMostPages = 1000;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// An ETag without its quotes and its mark of weakness.
std::string_view bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::unexpected<Error> strange_answer(const HubName& name, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", name.repository(), problem));
}

std::string text_of(const simdjson::simdjson_result<dom::element>& json) {
  std::string_view text;
  return json.get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

// One member of the list; nothing for a folder. Error: kBadFile.
Result<std::optional<HubFile>> read_listed(const HubName& name, const dom::element& json) {
  if (text_of(json["type"]) != "file") return std::optional<HubFile>();
  HubFile file;
  file.path = text_of(json["path"]);
  file.etag = text_of(json["oid"]);
  dom::object lfs;
  if (json["lfs"].get_object().get(lfs) == simdjson::SUCCESS) {
    file.is_lfs = true;
    file.etag = text_of(lfs["oid"]);
    if (file.etag.starts_with("sha256:")) file.etag.erase(0, 7);
  }
  if (json["size"].get_int64().get(file.size_bytes) != simdjson::SUCCESS || file.size_bytes < 0) {
    return strange_answer(name, fmt::format("the hub lists {} without a size", printable(file.path)));
  }
  if (!is_inside_path(file.path)) {
    return strange_answer(
        name, fmt::format("the hub lists a file outside of the model: '{}'", printable(file.path)));
  }
  if (!is_hex(file.etag, file.is_lfs ? 64 : 40)) {
    return strange_answer(name, fmt::format("the hub lists {} without a checksum", printable(file.path)));
  }
  return std::optional(std::move(file));
}

Status append_listed(const HubName& name, const std::string& body, std::vector<HubFile>& files) {
  dom::parser parser;
  dom::array list;
  if (parser.parse(body).get_array().get(list) != simdjson::SUCCESS) {
    return strange_answer(name, "the hub's list of files is no JSON array");
  }
  for (const dom::element json : list) {
    KVASIR_TRY(auto file, read_listed(name, json));
    if (file) files.push_back(std::move(*file));
  }
  return {};
}

}  // namespace

HubClient::HubClient(const HubSettings& settings, std::function<bool()> keep_running)
    : settings_(settings),
      keep_running_(std::move(keep_running)),
      origin_(origin_of(settings.endpoint)),
      http_(settings.ca_file, keep_running_) {}

std::string HubClient::api_url(const HubName& name) const {
  return fmt::format("{}/api/models/{}", settings_.endpoint, name.id());
}

HubTarget HubClient::target_of(const std::string& url) const { return {url, origin_of(url) != origin_}; }

HttpResponse HubClient::get(const HubTarget& target, const std::string& range, const BodySink& sink) {
  return http_.perform({target.url, target.is_foreign ? "" : settings_.token, range}, sink);
}

Result<HttpResponse> HubClient::ask_until_answered(const HttpRequest& request, const HubName& name,
                                                   const std::string& path) {
  Backoff backoff(keep_running_);
  while (true) {
    HttpResponse response = http_.perform(request);
    if (response.end == HttpResponse::End::kStopped) return make_error(ErrorKind::kCancelled, "interrupted");
    if (response.end == HttpResponse::End::kRefused)
      return strange_answer(name, "the hub's answer has more than 64 MiB");
    if (!may_try_again(response) || response.never_connected) {
      const bool is_usable = response.end == HttpResponse::End::kWhole && response.status < 400;
      if (is_usable) return response;
      return std::unexpected(explain(response, name, path));
    }
    switch (backoff.wait(response)) {
      case Backoff::Verdict::kTryAgain:
        break;
      case Backoff::Verdict::kGiveUp:
        return std::unexpected(explain(response, name, path));
      case Backoff::Verdict::kStopped:
        return make_error(ErrorKind::kCancelled, "interrupted");
    }
  }
}

Result<HttpResponse> HubClient::ask(HttpRequest request, const HubName& name, const std::string& path,
                                    HubTarget* target) {
  for (std::int32_t hop = 0; hop <= kMostRedirects; ++hop) {
    request.bearer_token = settings_.token;  // target_of said that it is the endpoint's own host
    KVASIR_TRY(HttpResponse response, ask_until_answered(request, name, path));
    if (response.status < 300) {
      if (target != nullptr) *target = {request.url, false};
      return response;
    }
    const HubTarget next = target_of(resolve_url(request.url, response.header("location")));
    if (next.url.empty()) return strange_answer(name, "the hub redirects to no address");
    if (next.is_foreign) {
      if (target == nullptr) {
        return strange_answer(
            name, fmt::format("the hub sends this request to another host, {}", host_of(next.url)));
      }
      *target = next;
      return response;
    }
    request.url = next.url;
  }
  return strange_answer(name, fmt::format("the hub redirects more than {} times", kMostRedirects));
}

Result<HubCommit> HubClient::resolve_revision(const HubName& name) {
  const std::string url = fmt::format("{}/revision/{}", api_url(name),
                                      percent_encoded(name.revision_or_main(), false));
  KVASIR_TRY(const HttpResponse response, ask({.url = url}, name, "", nullptr));
  dom::parser parser;
  dom::element json;
  HubCommit commit;
  if (parser.parse(response.body).get(json) == simdjson::SUCCESS) commit.sha = text_of(json["sha"]);
  if (!is_commit(commit.sha)) return strange_answer(name, "the hub names no commit for this revision");
  commit.license = text_of(json["cardData"]["license"]);
  dom::array tags;
  if (commit.license.empty() && json["tags"].get_array().get(tags) == simdjson::SUCCESS) {
    for (const dom::element tag : tags) {
      std::string_view text;
      if (tag.get_string().get(text) == simdjson::SUCCESS && text.starts_with("license:"))
        commit.license = text.substr(8);
    }
  }
  return commit;
}

Result<std::vector<HubFile>> HubClient::list_files(const HubName& name, const std::string& commit) {
  std::vector<HubFile> files;
  std::string url = fmt::format("{}/tree/{}?recursive=1", api_url(name), commit);
  for (std::int32_t page = 0; page < kMostPages; ++page) {
    KVASIR_TRY(const HttpResponse response, ask({.url = url}, name, "", nullptr));
    KVASIR_CHECKED(append_listed(name, response.body, files));
    const std::string_view next = next_page(response.header("link"));
    if (next.empty()) return files;
    const HubTarget target = target_of(resolve_url(url, next));
    if (target.url.empty() || target.is_foreign) {
      return strange_answer(name, "the next page of the hub's list of files is on another host");
    }
    url = target.url;
  }
  return strange_answer(name, fmt::format("the hub's list of files has more than {} pages", kMostPages));
}

Result<HubTarget> HubClient::locate(const HubName& name, const std::string& commit, const HubFile& file) {
  const std::string url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, name.id(), commit,
                                      percent_encoded(file.path, true));
  HubTarget target;
  HttpRequest request{.url = url, .bearer_token = {}, .range = {}, .head = true};
  KVASIR_TRY(const HttpResponse response, ask(request, name, file.path, &target));
  // These come with the hub's own answer. The headers of another host would be about its own storage.
  const std::string_view at_commit = response.header("x-repo-commit");
  if (!at_commit.empty() && at_commit != commit) {
    return strange_answer(name, fmt::format("{}: the hub answers for the commit {} instead of {}",
                                            printable(file.path), printable(at_commit), commit));
  }
  std::string_view etag = bare_etag(response.header("x-linked-etag"));
  if (etag.empty() && !target.is_foreign && !file.is_lfs) etag = bare_etag(response.header("etag"));
  if (!is_hex(etag, file.etag.size())) etag = {};  // of another kind
  if (!etag.empty() && etag != file.etag) {
    return strange_answer(name, fmt::format("{}: the hub's checksum is {} in its list and {} at the file",
                                            printable(file.path), file.etag, printable(etag)));
  }
  const auto size = whole_number(response.header("x-linked-size"));
  if (size && *size != file.size_bytes) {
    return strange_answer(name, fmt::format("{}: the hub says {} bytes in its list and {} at the file",
                                            printable(file.path), file.size_bytes, *size));
  }
  return target;
}

Result<std::string> HubClient::read_file(const HubName& name, const std::string& commit,
                                         const HubFile& file) {
  KVASIR_TRY(const HubTarget target, locate(name, commit, file));
  const HttpRequest request{.url = target.url, .bearer_token = target.is_foreign ? "" : settings_.token};
  KVASIR_TRY(HttpResponse response, ask_until_answered(request, name, file.path));
  if (response.status == 200 && static_cast<std::int64_t>(response.body.size()) == file.size_bytes) {
    return std::move(response.body);
  }
  return strange_answer(name, fmt::format("{}: {} bytes arrived, the hub says {}", printable(file.path),
                                          response.body.size(), file.size_bytes));
}

// One request with its redirects.
Result<HttpResponse> HubClient::get_range(const HubName& name, HubTarget target, const HubFile& file,
                                          ByteRange& wanted) {
  const std::string range = fmt::format("{}-{}", wanted.begin, wanted.begin + wanted.num_bytes - 1);
  std::int64_t skipped = 0;  // bytes of a whole file before the range
  const BodySink sink{
      .begin =
          [&](const HttpResponse& response) {
            wanted.bytes.clear();
            skipped = response.status == 200 ? wanted.begin : 0;
            const std::string said = fmt::format("bytes {}/{}", range, file.size_bytes);
            return response.status == 200 || (response.status == 206 && response.header("content-range") == said);
          },
      .take =
          [&](std::span<const std::byte> bytes) {
            const auto drop = std::min<std::int64_t>(skipped, std::ssize(bytes));
            skipped -= drop;
            bytes = bytes.subspan(static_cast<std::size_t>(drop));
            const auto count = std::min<std::int64_t>(wanted.num_bytes - std::ssize(wanted.bytes), std::ssize(bytes));
            wanted.bytes.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
            return std::ssize(wanted.bytes) < wanted.num_bytes || std::ssize(bytes) == count;
          }};
  for (std::int32_t hop = 0; hop <= kMostRedirects; ++hop) {
    HttpResponse response = get(target, range, sink);
    if (response.status < 300 || response.status >= 400) return response;
    const std::string next = resolve_url(target.url, response.header("location"));
    if (next.empty()) return strange_answer(name, "the server redirects to no address");
    target = target_of(next);
  }
  return strange_answer(name, fmt::format("the server redirects more than {} times", kMostRedirects));
}

Result<std::string> HubClient::read_range(const HubName& name, const std::string& commit, const HubFile& file,
                                          std::int64_t begin, std::int64_t num_bytes) {
  Backoff backoff(keep_running_);
  std::string bytes;  // so far: a connection that drops goes on where it ended
  while (true) {
    KVASIR_TRY(const HubTarget target, locate(name, commit, file));  // addresses expire
    const std::int64_t done = std::ssize(bytes);
    ByteRange wanted{.begin = begin + done, .num_bytes = num_bytes - done, .bytes = {}};
    KVASIR_TRY(const HttpResponse response, get_range(name, target, file, wanted));
    if (response.end == HttpResponse::End::kStopped) return make_error(ErrorKind::kCancelled, "interrupted");
    bytes += wanted.bytes;
    if (std::ssize(bytes) == num_bytes) return bytes;
    if (!wanted.bytes.empty()) {
      backoff.reset();
      continue;
    }
    if (response.status == 416) {
      return strange_answer(name, fmt::format("{}: the server refuses a range inside of the file (416)",
                                              printable(file.path)));
    }
    const bool is_answer = response.end != HttpResponse::End::kBroken && response.status < 300;
    if (response.end == HttpResponse::End::kRefused && response.status == 206) {
      return strange_answer(name, fmt::format("{}: the server sends {} instead of bytes {} to {} of {}",
                                              printable(file.path), printable(response.header("content-range")),
                                              wanted.begin, begin + num_bytes - 1, file.size_bytes));
    }
    // A connection that ended early is asked again, as is an address that has expired.
    const bool may_help = is_answer || may_try_again(response) || (target.is_foreign && response.status == 403);
    if (!may_help || response.never_connected) return std::unexpected(explain(response, name, file.path));
    switch (backoff.wait(response)) {
      case Backoff::Verdict::kTryAgain:
        break;
      case Backoff::Verdict::kGiveUp:
        return std::unexpected(explain(response, name, file.path));
      case Backoff::Verdict::kStopped:
        return make_error(ErrorKind::kCancelled, "interrupted");
    }
  }
}

Error HubClient::explain(const HttpResponse& response, const HubName& name, const std::string& path) const {
  const std::string id = name.repository();
  const std::string host = host_of(settings_.endpoint);
  if (response.end == HttpResponse::End::kBroken) {
    return {ErrorKind::kMachine, fmt::format("{}: {}: {}", id, host, response.failure)};
  }
  const std::string_view code = response.header("x-error-code");
  if (response.status == 403 && code == "GatedRepo") {
    return {ErrorKind::kBadFile,
            fmt::format("{}: accept the terms on its page first: {}/{}", id, settings_.endpoint, name.id())};
  }
  if (code == "GatedRepo") {
    return {ErrorKind::kBadFile, fmt::format("{}: accept the terms on its page {}/{}, then set HF_TOKEN", id,
                                             settings_.endpoint, name.id())};
  }
  if (code == "RevisionNotFound") {
    return {ErrorKind::kNotFound,
            fmt::format("{}: no revision is called '{}'", id, printable(name.revision_or_main()))};
  }
  if (code == "EntryNotFound" || (response.status == 404 && !path.empty())) {
    return {ErrorKind::kNotFound, fmt::format("{}: no file is called '{}'", id, printable(path))};
  }
  if (response.status == 401 || response.status == 404) {
    const char* const rest = settings_.token.empty() ? "it needs HF_TOKEN"
                                                     : "the token of HF_TOKEN may not read it";
    return {ErrorKind::kNotFound, fmt::format("{}: no such model, or {}", id, rest)};
  }
  if (response.status == 403) {
    const char* const rest = settings_.token.empty() ? "; it may need HF_TOKEN" : " with this token";
    return {ErrorKind::kBadFile, fmt::format("{}: {} refuses access (403){}", id, host, rest)};
  }
  if (response.status == 429) {
    return {ErrorKind::kUnavailable, fmt::format("{}: {} allows no more requests for now (429)", id, host)};
  }
  const ErrorKind kind = response.status >= 500 ? ErrorKind::kMachine : ErrorKind::kBadFile;
  return {kind, fmt::format("{}: {} answers with status {}", id, host, response.status)};
}

std::string_view next_page(std::string_view link) {
  while (true) {
    const std::size_t begin = link.find('<');
    const std::size_t end = link.find('>', begin);
    if (begin == link.npos || end == link.npos) return {};
    const std::string_view url = link.substr(begin + 1, end - begin - 1);
    link.remove_prefix(end + 1);
    const std::string_view parameters = link.substr(0, link.find('<'));
    if (parameters.find("rel=\"next\"") != parameters.npos || parameters.find("rel=next") != parameters.npos)
      return url;
  }
}

}  // namespace kvasir::store
