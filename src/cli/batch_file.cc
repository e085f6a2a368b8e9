#include "cli/batch_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "base/lone_surrogates.h"
#include "base/printable.h"

namespace kvasir::cli {
namespace {

using simdjson::dom::element;

// A body says by itself what it asks for.
std::string_view request_url(simdjson::dom::object body) {
  if (body["messages"].error() == simdjson::SUCCESS) return "/v1/chat/completions";
  if (body["input"].error() == simdjson::SUCCESS) return "/v1/embeddings";
  if (body["query"].error() == simdjson::SUCCESS) return "/v1/rerank";
  if (body["text_1"].error() == simdjson::SUCCESS) return "/v1/score";
  return "/v1/completions";
}

bool sets_max_tokens(simdjson::dom::object body) {
  return body["max_tokens"].error() == simdjson::SUCCESS ||
         body["max_completion_tokens"].error() == simdjson::SUCCESS;
}

// The body with one more member in front.
std::string with_max_tokens(simdjson::dom::object body, std::int32_t max_tokens) {
  const std::string text = simdjson::minify(body);
  const std::string rest = text.size() > 2 ? "," + text.substr(1) : text.substr(1);
  return fmt::format("{{\"max_tokens\":{}{}", max_tokens, rest);
}

std::optional<std::string> custom_id_of(const std::string& line) {
  simdjson::dom::parser parser;
  std::string_view id;
  if (parser.parse(line)["custom_id"].get(id) != simdjson::SUCCESS) return std::nullopt;
  return std::string(id);
}

std::unexpected<Error> system_error(const std::string& path) {
  return make_error(ErrorKind::kMachine, fmt::format("{}: {}", printable_line(path), std::strerror(errno)));
}

}  // namespace

Result<BatchRequest> parse_batch_line(const std::string& line, std::int64_t number,
                                      std::int32_t default_max_tokens) {
  const auto refuse = [](std::string why) { return make_error(ErrorKind::kBadFile, std::move(why)); };
  simdjson::dom::parser parser;
  simdjson::dom::object object, body;
  auto code = parser.parse(line).get(object);
  if (code == simdjson::STRING_ERROR) {
    if (const auto replaced = with_replaced_lone_surrogates(line)) code = parser.parse(*replaced).get(object);
  }
  if (code != simdjson::SUCCESS) return refuse("not a JSON object");
  BatchRequest batch{.custom_id = std::to_string(number), .request = {.method = "POST"}};
  const bool has_envelope = object["body"].get(body) == simdjson::SUCCESS;
  if (!has_envelope) body = object;
  std::string_view text = request_url(body);
  if (has_envelope) {
    const auto url = object["url"];
    if (url.error() == simdjson::SUCCESS && url.get(text) != simdjson::SUCCESS)
      return refuse("url must be a string");
  }
  batch.request.path = text;
  const auto id = object["custom_id"];
  if (id.error() == simdjson::SUCCESS) {
    if (id.get(text) != simdjson::SUCCESS || text.empty())
      return refuse("custom_id must be a string, not empty");
    batch.custom_id = text;
  }
  const auto method = object["method"];
  if (has_envelope && method.error() == simdjson::SUCCESS &&
      (method.get(text) != simdjson::SUCCESS || text != "POST")) {
    return refuse("method must be \"POST\"");
  }
  constexpr std::string_view kWithoutText[] = {"/v1/embeddings", "/v1/rerank", "/v1/score"};
  const bool generates = std::ranges::find(kWithoutText, batch.request.path) == std::end(kWithoutText);
  batch.request.body = generates && default_max_tokens > 0 && !sets_max_tokens(body)
                           ? with_max_tokens(body, default_max_tokens)
                           : simdjson::minify(body);
  return batch;
}

Result<BatchOutput> BatchOutput::open(const std::string& path, bool resume) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  const bool is_stream = path == "-";
  if (is_stream || (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("{}: answers go to a file, which a later run can go on with; this is none", printable_line(path)),
        "OUT");
  }
  auto lock = store::FileLock::acquire(path, [] { return false; });
  if (!lock && lock.error().kind != ErrorKind::kCancelled) return std::unexpected(std::move(lock).error());
  if (!lock) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}: another process writes its answers there", printable_line(path)));
  }
  BatchOutput output(*std::move(lock));
  output.path_ = path;
  std::uintmax_t whole_bytes = 0;
  {
    std::ifstream before(path);
    for (std::string line; before && std::getline(before, line) && !before.eof();) {
      whole_bytes += line.size() + 1;
      auto id = custom_id_of(line);
      if (!id)
        return make_error(ErrorKind::kBadFile,
                          fmt::format("{}: not a file of answers", printable_line(path)));
      output.answered_.insert(std::move(*id));
    }
  }
  std::error_code error;
  if (!resume && std::filesystem::file_size(path, error) > 0 && !error) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} has answers already: --resume goes on with it", printable_line(path)),
                      "resume");
  }
  // A line that was cut off when the last run ended.
  std::filesystem::resize_file(path, whole_bytes, error);
  output.file_.open(path, std::ios::app);
  if (!output.file_) return system_error(path);
  return output;
}

Status BatchOutput::write(const BatchRequest& request, const server::http::Response& response) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("custom_id", request.custom_id).key("response").begin_object();
  json.member("status_code", response.status).key("body").raw(response.body).end_object();
  json.member_null("error").end_object();
  file_ << line << '\n' << std::flush;
  if (!file_) return system_error(path_);
  return {};
}

}  // namespace kvasir::cli
