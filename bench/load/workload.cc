#include "workload.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <fstream>
#include <string_view>
#include <utility>

namespace kvasir::load {
namespace {

Result<PlannedRequest> request_of(simdjson::dom::element line) {
  PlannedRequest request;
  simdjson::dom::array prompt;
  std::int64_t max_tokens = 0;
  if (line["prompt"].get(prompt) != simdjson::SUCCESS || prompt.size() == 0) {
    return make_error(ErrorKind::kBadFile, "prompt must be an array of token ids", "prompt");
  }
  if (line["max_tokens"].get(max_tokens) != simdjson::SUCCESS || max_tokens < 1) {
    return make_error(ErrorKind::kBadFile, "max_tokens must be an integer of at least 1", "max_tokens");
  }
  request.prompt = simdjson::minify(prompt);
  request.max_tokens = static_cast<std::int32_t>(max_tokens);
  std::string_view key;
  if (line["api_key"].get(key) == simdjson::SUCCESS) request.api_key = key;
  if (line["at_ms"].get(request.at_ms) != simdjson::SUCCESS) request.at_ms = 0.0;
  return request;
}

}  // namespace

Result<std::vector<PlannedRequest>> read_workload(const std::string& path) {
  std::ifstream file(path);
  if (!file) return make_error(ErrorKind::kBadFile, fmt::format("{}: cannot be opened", path));
  std::vector<PlannedRequest> requests;
  simdjson::dom::parser parser;
  for (std::string line; std::getline(file, line);) {
    const auto refuse = [&](std::string_view why) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}:{}: {}", path, requests.size() + 1, why));
    };
    simdjson::dom::element json;
    if (parser.parse(line).get(json) != simdjson::SUCCESS) return refuse("not JSON");
    auto request = request_of(json);
    if (!request) return refuse(request.error().message);
    requests.push_back(std::move(*request));
  }
  if (requests.empty()) return make_error(ErrorKind::kBadFile, fmt::format("{}: no requests", path));
  return requests;
}

}  // namespace kvasir::load
