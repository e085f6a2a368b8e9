#include "eval/workload.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/printable.h"

namespace kvasir::eval {
namespace {

constexpr std::int64_t kMostMaxTokens = 1 << 24;

Result<WorkloadItem> parse_item(const Engine& engine, simdjson::dom::parser& parser, std::string_view line, std::string_view place) {
  const auto bad = [&](std::string_view what) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", place, what), "workload");
  };
  simdjson::dom::element element, messages;
  std::string_view prompt;
  WorkloadItem item;
  if (parser.parse(line.data(), line.size()).get(element) != simdjson::SUCCESS || !element.is_object()) {
    return bad("is no JSON object");
  }
  if (element["messages"].get(messages) == simdjson::SUCCESS) {
    KVASIR_TRY(item.prompt_token_ids, engine.encode_chat({.messages = simdjson::minify(messages)}));
  } else if (element["prompt"].get_string().get(prompt) == simdjson::SUCCESS) {
    KVASIR_TRY(item.prompt_token_ids, engine.encode(prompt));
  } else {
    return bad("has neither a text \"prompt\" nor \"messages\"");
  }
  if (item.prompt_token_ids.empty()) return bad("its prompt has no tokens");
  std::int64_t max_tokens = 0;
  if (simdjson::dom::element given; element["max_tokens"].get(given) == simdjson::SUCCESS) {
    if (given.get_int64().get(max_tokens) != simdjson::SUCCESS) return bad("max_tokens is no whole number");
    if (max_tokens < 1 || max_tokens > kMostMaxTokens) {
      return bad(fmt::format("max_tokens is 1 to {}, not {}", kMostMaxTokens, max_tokens));
    }
    item.max_tokens = static_cast<std::int32_t>(max_tokens);
  }
  if (element["seed"].get_uint64().get(item.seed) != simdjson::SUCCESS) item.seed = 0;
  return item;
}

}  // namespace

Result<std::vector<WorkloadItem>> parse_workload(const Engine& engine, std::string_view lines, std::string_view name) {
  simdjson::dom::parser parser;
  std::vector<WorkloadItem> items;
  std::size_t number = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \r\t") == line.npos) continue;
    KVASIR_TRY(WorkloadItem item, parse_item(engine, parser, line, fmt::format("{}: line {}", printable_line(name), number)));
    items.push_back(std::move(item));
  }
  if (items.empty()) return make_error(ErrorKind::kBadFile, fmt::format("{}: it has no prompts", printable_line(name)), "workload");
  return items;
}

}  // namespace kvasir::eval
