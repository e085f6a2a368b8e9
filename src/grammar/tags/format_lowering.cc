#include "grammar/tags/format_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "grammar/ebnf/ebnf_grammar.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/lowering.h"

namespace kvasir::grammar {
namespace {

// The message of a part's own error, behind where the part is.
std::unexpected<Error> tag_fault_of(const JsonValue& at, const Error& error) {
  return tag_fault(at, error.message, error.kind);
}

}  // namespace

const std::vector<FormatLowering::Kind>& FormatLowering::kinds() {
  static const std::vector<Kind> kinds = {
      {"const_string", &FormatLowering::lower_const_string},
      {"json_schema", &FormatLowering::lower_json_schema},
      {"grammar", &FormatLowering::lower_grammar},
      {"regex", &FormatLowering::lower_regex},
      {"any_text", &FormatLowering::lower_any_text},
      {"sequence", &FormatLowering::lower_sequence},
      {"or", &FormatLowering::lower_or},
      {"optional", &FormatLowering::lower_optional},
      {"star", &FormatLowering::lower_star},
      {"plus", &FormatLowering::lower_plus},
      {"repeat", &FormatLowering::lower_repeat},
      {"tag", &FormatLowering::lower_tag},
      {"triggered_tags", &FormatLowering::lower_triggered_tags},
      {"tags_with_separator", &FormatLowering::lower_tags_with_separator},
      {"dispatch", &FormatLowering::lower_dispatch},
      {"token", &FormatLowering::lower_token},
      {"exclude_token", &FormatLowering::lower_exclude_token},
      {"any_tokens", &FormatLowering::lower_any_tokens},
  };
  return kinds;
}

Result<Part> FormatLowering::lower(const JsonValue& format, const Ends& ends) {
  if (!format.is_object()) return tag_fault(format, "this is no format object");
  KVASIR_TRY(const std::string type, string_member(format, "type"));
  const auto kind = std::ranges::find(kinds(), type, &Kind::name);
  if (kind == kinds().end()) {
    return tag_fault(format, fmt::format("the format '{}' is not supported", printable(type, 60)), ErrorKind::kUnmet);
  }
  return (this->*kind->lower)(format, ends);
}

Part FormatLowering::with_end(const Part& part, const Ends& ends) {
  if (ends.empty()) return part;
  const Part end = builder_.text(store_.literals({ends.begin(), ends.end()}));
  return builder_.sequence(std::array{part, end});
}

Result<Part> FormatLowering::lower_const_string(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const std::string value, string_member(format, "value"));
  return with_end(builder_.text(store_.literal(value)), ends);
}

Result<Part> FormatLowering::schema(const JsonValue& schema) {
  if (!schema.is_object() && !schema.is_bool()) return tag_fault(schema, "this is no schema");
  SchemaEvaluator evaluator(schema, store_, derivatives_);
  SchemaLowering lowering(evaluator, builder_, options_.schema);
  const auto rule = lowering.lower(evaluator.name_of(schema));
  if (!rule && rule.error().message.starts_with("'/")) {  // the place within the schema
    return make_error(rule.error().kind, "structural tag, " + rule.error().message);
  }
  if (!rule) return tag_fault_of(schema, rule.error());
  return builder_.rule(*rule);
}

Result<Part> FormatLowering::lower_json_schema(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* value, member(format, "json_schema"));
  if (const JsonValue* style = format.find("style"); style != nullptr && style->text != "json") {
    return tag_fault(*style, fmt::format("the style '{}' is not supported", printable(style->text, 60)),
                     ErrorKind::kUnmet);
  }
  KVASIR_TRY(const bool any_order, bool_member(format, "any_order"));
  if (any_order) return tag_fault(*format.find("any_order"), "members in any order are not supported", ErrorKind::kUnmet);
  KVASIR_TRY(const Part part, schema(*value));
  return with_end(part, ends);
}

Result<Part> FormatLowering::lower_grammar(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const std::string text, string_member(format, "grammar"));
  const EbnfOptions options = {.dialect = EbnfDialect::kXGrammar, .tokens = options_.tokens};
  const auto rule = add_ebnf(builder_, store_, derivatives_, text, options);
  if (!rule) return tag_fault_of(*format.find("grammar"), rule.error());
  return with_end(builder_.rule(*rule), ends);
}

Result<Part> FormatLowering::lower_regex(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const std::string pattern, string_member(format, "pattern"));
  const auto term = pattern_language(store_, pattern, PatternFit::kWhole);
  if (!term) return tag_fault_of(*format.find("pattern"), term.error());
  return with_end(builder_.text(derivatives_.is_alive(*term) ? *term : kNothing), ends);
}

Result<Part> FormatLowering::lower_any_text(const JsonValue& format, const Ends& ends) {
  if (const JsonValue* tokens = format.find("max_tokens"); tokens != nullptr && tokens->kind != JsonValue::Kind::kNull) {
    return tag_fault(*tokens, "a limit of tokens is not supported", ErrorKind::kUnmet);
  }
  std::uint32_t max_characters = kUnbounded;
  if (const JsonValue* max = format.find("max_chars"); max != nullptr && max->kind != JsonValue::Kind::kNull) {
    KVASIR_TRY(max_characters, count_of(*max));
  }
  KVASIR_TRY(std::vector<std::string> marks, strings_member(format, "excludes"));
  marks.insert(marks.end(), ends.begin(), ends.end());
  FreeText text(store_, derivatives_, std::move(marks));
  if (ends.empty()) return builder_.text(text.without_marks(max_characters));
  std::vector<Part> parts;
  for (const std::string& end : ends) parts.push_back(builder_.text(text.until(end, max_characters)));
  return builder_.choice(parts);
}

Result<Part> FormatLowering::lower_sequence(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* elements, member(format, "elements"));
  if (!elements->is_array() || elements->children.empty()) return tag_fault(*elements, "this is no list of formats");
  std::vector<Part> parts;
  for (const auto& element : elements->children) {
    const bool is_last = element == elements->children.back();
    KVASIR_TRY(Part part, lower(*element, is_last ? ends : Ends{}));
    parts.push_back(std::move(part));
  }
  return builder_.sequence(parts);
}

Result<Part> FormatLowering::lower_or(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* elements, member(format, "elements"));
  if (!elements->is_array() || elements->children.empty()) return tag_fault(*elements, "this is no list of formats");
  std::vector<Part> parts;
  for (const auto& element : elements->children) {
    KVASIR_TRY(Part part, lower(*element, ends));
    parts.push_back(std::move(part));
  }
  return builder_.choice(parts);
}

// A star for what may be empty: the rounds that are do not matter.
Result<Part> FormatLowering::repeated(const JsonValue& format, std::uint32_t min, std::uint32_t max, const Ends& ends) {
  KVASIR_TRY(const JsonValue* content, member(format, "content"));
  KVASIR_TRY(const Part part, lower(*content, {}));
  const Part none = builder_.text(kEmptyText);
  Part all = none;
  if (max == 1) {
    all = min == 1 ? part : builder_.choice(std::array{part, none});
  } else if (max == kUnbounded && min <= 1) {
    const Part star = builder_.repeat(part, 0, kUnbounded);
    all = min == 0 ? star : builder_.sequence(std::array{part, star});
  } else if (max > 0) {
    if (part.kind != Part::Kind::kTerminal && may_be_empty(*content)) {
      return tag_fault(*content, "a counted repetition of what may be empty, or of a grammar, is not supported",
                       ErrorKind::kUnmet);
    }
    all = builder_.repeat(part, min, max);
  }
  return with_end(all, ends);
}

Result<Part> FormatLowering::lower_optional(const JsonValue& format, const Ends& ends) {
  return repeated(format, 0, 1, ends);
}

Result<Part> FormatLowering::lower_star(const JsonValue& format, const Ends& ends) {
  return repeated(format, 0, kUnbounded, ends);
}

Result<Part> FormatLowering::lower_plus(const JsonValue& format, const Ends& ends) {
  return repeated(format, 1, kUnbounded, ends);
}

Result<Part> FormatLowering::lower_repeat(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* least, member(format, "min"));
  KVASIR_TRY(const JsonValue* most, member(format, "max"));
  KVASIR_TRY(const std::uint32_t min, count_of(*least));
  std::uint32_t max = kUnbounded;
  if (!most->is_number() || most->text != "-1") {
    KVASIR_TRY(max, count_of(*most));
  }
  if (min > max) return tag_fault(*most, "this is less than 'min'");
  return repeated(format, min, max, ends);
}

Result<Part> FormatLowering::other_token(const JsonValue& format) {
  std::vector<TokenId> excluded;
  if (end_token_) excluded.push_back(*end_token_);
  if (const JsonValue* list = format.find("exclude_tokens"); list != nullptr) {
    if (!list->is_array()) return tag_fault(*list, "this is no list of tokens");
    for (const auto& element : list->children) {
      KVASIR_TRY(const TokenId token, token_of(*element));
      excluded.push_back(token);
    }
  }
  if (!options_.tokens.has_text) {
    return tag_fault(format, "it is not known which tokens have text", ErrorKind::kUnmet);
  }
  std::ranges::sort(excluded);
  std::vector<Part> parts;
  for (const TokenId token : other_tokens(options_.tokens, excluded)) parts.push_back(builder_.token(token));
  num_other_tokens_ += parts.size();
  if (num_other_tokens_ > kMaxOtherTokens) {
    return tag_fault(format, fmt::format("the tokens that are none of some are more than {} together", kMaxOtherTokens),
                     ErrorKind::kUnmet);
  }
  return builder_.choice(parts);
}

Result<Part> FormatLowering::lower_exclude_token(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const Part token, other_token(format));
  return with_end(token, ends);
}

Result<Part> FormatLowering::lower_any_tokens(const JsonValue& format, const Ends& ends) {
  std::uint32_t max_tokens = kUnbounded;
  if (const JsonValue* max = format.find("max_tokens"); max != nullptr && max->kind != JsonValue::Kind::kNull) {
    KVASIR_TRY(max_tokens, count_of(*max));
  }
  KVASIR_TRY(const Part token, other_token(format));
  if (max_tokens == 0) return with_end(builder_.text(kEmptyText), ends);
  return with_end(builder_.repeat(token, 0, max_tokens), ends);
}

Result<Part> FormatLowering::lower_token(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* value, member(format, "token"));
  KVASIR_TRY(const TokenId token, token_of(*value));
  return with_end(builder_.token(token), ends);
}

}  // namespace kvasir::grammar
