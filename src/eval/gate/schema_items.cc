#include "eval/gate/schema_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "eval/gate/schema_reader.h"
#include "grammar/bench/mask_bench.h"

namespace kvasir::eval {
namespace {

constexpr std::size_t kMaxSchemaBytes = 2000;

std::string question_about_schema(std::string_view schema) {
  return fmt::format("Answer with a JSON value that satisfies this JSON Schema, and with nothing else.\n\n{}", schema);
}

Result<std::vector<TokenId>> encode_question(const Engine& engine, const std::string& question) {
  if (engine.chat_template() == nullptr) return engine.encode(question + "\n\n");
  std::string messages;
  JsonWriter json(messages);
  json.begin_array().begin_object().member("role", "user").member("content", question).end_object().end_array();
  return engine.encode_chat({.messages = messages, .tools = "", .template_kwargs = ""});
}

std::vector<std::pair<std::size_t, std::string_view>> numbered_lines(std::string_view text) {
  std::vector<std::pair<std::size_t, std::string_view>> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \r\t") != line.npos) lines.emplace_back(number, line);
  }
  return lines;
}

}  // namespace

Result<std::vector<SchemaItem>> make_schema_items(const Engine& engine, std::string_view text, std::int32_t num_schemas,
                                                  std::int32_t max_answer_tokens) {
  const auto lines = numbered_lines(text);
  const auto wanted = static_cast<std::size_t>(num_schemas);
  const std::size_t stride = std::max<std::size_t>(1, lines.size() / std::max<std::size_t>(1, wanted));
  std::vector<SchemaItem> items;
  // Each place of a stride in turn, so that those left out are made up for by their neighbours.
  for (std::size_t offset = 0; offset < stride && items.size() < wanted; ++offset) {
    for (std::size_t i = offset; i < lines.size() && items.size() < wanted; i += stride) {
      auto parsed = grammar::parse_mask_bench_case(lines[i].second);
      if (!parsed) {
        return make_error(ErrorKind::kBadFile, fmt::format("schemas: line {}: {}", lines[i].first, parsed.error().message),
                          "schemas");
      }
      if (parsed->schema.size() > kMaxSchemaBytes || !SchemaReader::create(parsed->schema)) continue;
      KVASIR_TRY(std::vector<TokenId> prompt, encode_question(engine, question_about_schema(parsed->schema)));
      const std::size_t num_tokens = prompt.size() + static_cast<std::size_t>(max_answer_tokens);
      if (num_tokens > static_cast<std::size_t>(engine.model_info().max_model_len_tokens)) continue;
      items.push_back({.name = std::move(parsed->name), .schema = std::move(parsed->schema), .prompt = std::move(prompt)});
    }
  }
  if (lines.empty()) return make_error(ErrorKind::kBadFile, "schemas: the file has none", "schemas");
  return items;
}

}  // namespace kvasir::eval
