#include "cli/guide_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cli/input_file.h"
#include "grammar/ebnf/ebnf_grammar.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/json_schema.h"
#include "grammar/shipped/shipped_grammars.h"
#include "server/api/tool_calls/detect_syntax.h"
#include "server/api/tool_calls/reasoning_block.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

std::vector<std::string> split_at_commas(const std::vector<std::string>& lists) {
  std::vector<std::string> items;
  for (const std::string& list : lists) {
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      items.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return items;
}

Result<std::optional<Guide>> read_guide(const GuideOptions& options) {
  std::optional<Guide> guide;
  if (!options.schema_file.empty()) {
    KVASIR_TRY(std::string schema, read_input_file(options.schema_file, kMaxFileBytes));
    guide = Guide{.text = std::move(schema), .is_strict = true, .field = "--schema"};
  } else if (!options.regex.empty()) {
    guide = Guide{.kind = Guide::Kind::kRegex, .text = options.regex, .field = "--regex"};
  } else if (!options.grammar_file.empty()) {
    std::string grammar;
    if (const auto shipped = grammar::shipped_grammar(options.grammar_file)) {
      grammar = *shipped;
    } else {
      KVASIR_TRY(grammar, read_input_file(options.grammar_file, kMaxFileBytes));
    }
    guide = Guide{.kind = Guide::Kind::kGbnf, .text = std::move(grammar), .field = "--grammar"};
  } else if (!options.choices.empty()) {
    guide = Guide{.kind = Guide::Kind::kChoice, .choices = split_at_commas(options.choices), .field = "--choice"};
  }
  return guide;
}

// Any name may be a token's, and any id.
grammar::TokenNames any_tokens() {
  return {.find = [](std::string_view) { return std::optional<TokenId>(0); },
          .num_tokens = static_cast<std::int32_t>(grammar::kMaxOtherTokens),
          .has_text = [](TokenId) { return true; }};
}

// Errors of the guide whatever the model's vocabulary.
Status parse(const Guide& guide) {
  grammar::TermStore store;
  const auto status_of = [](const auto& result) { return result ? Status() : Status(std::unexpected(result.error())); };
  switch (guide.kind) {
    case Guide::Kind::kJsonSchema:
      return status_of(grammar::grammar_from_schema(store, guide.text));
    case Guide::Kind::kRegex:
      return status_of(grammar::pattern_language(store, guide.text, grammar::PatternFit::kWhole));
    case Guide::Kind::kGbnf:
      return status_of(grammar::grammar_from_ebnf(store, guide.text, {.tokens = any_tokens()}));
    case Guide::Kind::kChoice:
      if (std::ranges::none_of(guide.choices, &std::string::empty)) return {};
      return make_error(ErrorKind::kUsage, "a choice is empty");
    default:
      return {};
  }
}

}  // namespace

void add_guide_options(CLI::App& verb, GuideOptions& options) {
  CLI::Option* schema = verb.add_option("--schema", options.schema_file,
                                        "The answer is JSON that satisfies the JSON Schema in this file");
  CLI::Option* regex =
      verb.add_option("--regex", options.regex, "The whole answer matches this regular expression")->excludes(schema);
  CLI::Option* grammar = verb.add_option("--grammar", options.grammar_file,
                                         "The answer is of the grammar in this file, in GBNF, or of json, arithmetic, sql_select")
                             ->excludes(schema)
                             ->excludes(regex);
  verb.add_option("--choice", options.choices, "The answer is one of these, A,B,..; may be repeated")
      ->take_all()
      ->expected(1)
      ->excludes(schema)
      ->excludes(regex)
      ->excludes(grammar);
}

bool has_guide(const GuideOptions& options) {
  return !options.schema_file.empty() || !options.regex.empty() || !options.grammar_file.empty() ||
         !options.choices.empty();
}

Result<std::optional<Guide>> make_guide(const GuideOptions& options) {
  KVASIR_TRY(std::optional<Guide> guide, read_guide(options));
  if (!guide) return guide;
  if (const Status parsed = parse(*guide); !parsed) {
    const Error& error = parsed.error();
    return make_error(error.kind, fmt::format("{}: {}", guide->field, error.message), guide->field);
  }
  return guide;
}

void allow_reasoning(const Engine& engine, Request& request) {
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  const bool has_begun = server::api::ends_in_reasoning(request.prompt_token_ids, tokenizer, /*is_continued=*/false);
  request.guide->reasoning = server::api::reasoning_before_answer(
      server::api::detect_reasoning_marks(*engine.chat_template(), tokenizer), has_begun, /*may_think=*/true);
  if (!request.guide->reasoning) return;
  for (const std::string& mark : {request.guide->reasoning->open, request.guide->reasoning->close}) {
    const TokenId token = mark.empty() ? kNoToken : tokenizer.vocab().find(mark);
    if (token != kNoToken) request.sampling.shown_special_tokens.push_back(token);
  }
}

}  // namespace kvasir::cli
