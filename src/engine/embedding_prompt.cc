#include "engine/embedding_prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <variant>
#include <vector>

#include "base/printable.h"
#include "io/sentence_modules.h"

namespace kvasir {
namespace {

using PromptMap = std::map<std::string, std::string>;
using Names = std::span<const std::string_view>;

// What clients call the two sides of a search, and the prompts that models have for them.
constexpr std::string_view kQueryTypes[] = {"query", "search_query", "retrieval.query"};
constexpr std::string_view kDocumentTypes[] = {"document", "passage", "search_document", "retrieval.document",
                                               "retrieval.passage"};
constexpr std::string_view kQueryPrompts[] = {"query"};
constexpr std::string_view kDocumentPrompts[] = {"document", "passage", "corpus"};

std::string lowercase_of(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

const std::string* find_prompt(const PromptMap& prompts, std::string_view name) {
  const auto found = std::ranges::find_if(
      prompts, [wanted = lowercase_of(name)](const auto& entry) { return lowercase_of(entry.first) == wanted; });
  return found == prompts.end() ? nullptr : &found->second;
}

std::unexpected<Error> no_prompt(const ModelInfo& info, std::string_view field, std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [own, prompt] : info.embedding_prompts) known.push_back(printable_line(own));
  return make_error(ErrorKind::kUsage,
                    fmt::format("{}: the model has no prompt \"{}\"{}{}", field, printable_line(name),
                                known.empty() ? "" : ", it has ", fmt::join(known, ", ")),
                    std::string(field));
}

Result<std::string> prompt_for(const ModelInfo& info, const std::string& input_type) {
  const PromptMap& prompts = info.embedding_prompts;
  if (prompts.empty()) return std::string();
  if (const std::string* own = find_prompt(prompts, input_type)) return *own;
  const std::string type = lowercase_of(input_type);
  for (const auto& [types, names] :
       {std::pair(Names(kQueryTypes), Names(kQueryPrompts)), std::pair(Names(kDocumentTypes), Names(kDocumentPrompts))}) {
    if (std::ranges::find(types, type) == types.end()) continue;
    for (const std::string_view name : names) {
      if (const std::string* prompt = find_prompt(prompts, name)) return *prompt;
    }
    return std::string();
  }
  return no_prompt(info, "input_type", input_type);
}

}  // namespace

bool wants_prompt(const PromptWish& wish) { return wish.prompt || wish.prompt_name || wish.input_type; }

Result<std::string> embedding_prompt(const ModelInfo& info, const PromptWish& wish) {
  if (wish.prompt && wish.prompt_name) {
    return make_error(ErrorKind::kUsage, "prompt_name: prompt is given too, one is wanted", "prompt_name");
  }
  if (wish.prompt) return *wish.prompt;
  if (wish.prompt_name) {
    const auto found = info.embedding_prompts.find(*wish.prompt_name);
    if (found != info.embedding_prompts.end()) return found->second;
    return no_prompt(info, "prompt_name", *wish.prompt_name);
  }
  if (wish.input_type) return prompt_for(info, *wish.input_type);
  const auto usual = info.embedding_prompts.find(info.default_prompt_name);
  return usual == info.embedding_prompts.end() ? std::string() : usual->second;
}

void read_embedding_prompts(const io::Metadata& metadata, ModelInfo& info) {
  const auto& values = metadata.values();
  for (auto entry = values.lower_bound(io::kPromptKeyPrefix);
       entry != values.end() && entry->first.starts_with(io::kPromptKeyPrefix); ++entry) {
    if (const auto* text = std::get_if<std::string>(&entry->second)) {
      info.embedding_prompts.emplace(entry->first.substr(io::kPromptKeyPrefix.size()), *text);
    }
  }
  const auto usual = metadata.find_string(io::kDefaultPromptKey);
  if (usual && *usual) info.default_prompt_name = **usual;
}

}  // namespace kvasir
