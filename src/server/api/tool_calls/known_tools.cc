#include "server/api/tool_calls/known_tools.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/regex/term_store.h"
#include "grammar/tags/tool_grammar.h"

namespace kvasir::server::api {
namespace {

// All that a grammar is made from.
std::string key_of(std::string_view family, const GuideTool& tool) {
  std::string key = fmt::format("{}:{}:{}:{}", family, tool.name.size(), tool.name, tool.schema);
  for (const std::string& argument : tool.text_arguments) key += fmt::format("\n{}", argument);
  return key;
}

std::string find_fault(std::string_view family, const GuideTool& tool) {
  grammar::TermStore store;
  const ToolGuide alone = {.family = std::string(family), .tools = {tool}};
  const auto made = grammar::grammar_of_tools(store, alone, {});
  return made ? std::string() : made.error().message;
}

}  // namespace

std::string KnownTools::fault_of(std::string_view family, const GuideTool& tool) {
  std::string key = key_of(family, tool);
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, key, &std::pair<std::string, std::string>::first);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return found->second;
    }
  }
  std::string fault = find_fault(family, tool);
  const std::lock_guard lock(mutex_);
  num_bytes_ += key.size() + fault.size();
  kept_.emplace_front(std::move(key), fault);
  while (num_bytes_ > kMaxBytes && kept_.size() > 1) {
    num_bytes_ -= kept_.back().first.size() + kept_.back().second.size();
    kept_.pop_back();
  }
  return fault;
}

}  // namespace kvasir::server::api
