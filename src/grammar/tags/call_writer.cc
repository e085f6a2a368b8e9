#include "grammar/tags/call_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/lowering.h"
#include "grammar/tags/call_forms.h"

namespace kvasir::grammar {
namespace {

using enum ToolCallLayout;
using text::regex::CodePointSet;

constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMostBranches = 16;  // names that are told apart at one place
constexpr std::string_view kAnyObject = R"({"type":"object"})";

std::string tool_label(const GuideTool& tool) { return fmt::format("tool '{}'", printable(tool.name.substr(0, 64))); }

// The text between the quotes.
std::string in_quotes(std::string_view text) {
  std::string json;
  JsonWriter(json).value(text);
  return json.substr(1, json.size() - 2);
}

std::size_t character_bytes(std::string_view text) {
  return static_cast<std::size_t>(utf8_prefix(text).num_bytes);
}

// How many bytes both begin with, in whole characters.
std::size_t common_bytes(std::string_view a, std::string_view b) {
  std::size_t size = 0;
  while (size < a.size() && size < b.size()) {
    const std::size_t next = character_bytes(a.substr(size));
    if (a.substr(size, next) != b.substr(size, next)) break;
    size += next;
  }
  return size;
}

}  // namespace

bool CallWriter::writes_json() const { return syntax_.layout == kJson || syntax_.layout == kKeyedJson; }

Part CallWriter::gap() {
  const TermId blank = store_.any_of({store_.literal(" "), store_.literal("\n")});
  return GrammarBuilder::text(store_.repeat(blank, 0, 2));
}

Part CallWriter::optional(const Part& part) {
  return builder_.choice(std::array{GrammarBuilder::text(kEmptyText), part});
}

Part CallWriter::identifier(std::uint32_t min_chars, std::uint32_t max_chars) {
  CodePointSet set = CodePointSet::of('a', 'z');
  set.add(CodePointSet::of('A', 'Z'));
  set.add(CodePointSet::of('0', '9'));
  return GrammarBuilder::text(store_.repeat(store_.char_class(set), min_chars, max_chars));
}

Status CallWriter::check_name(const GuideTool& tool) const {
  if (tool.name.empty() || tool.name.size() > kMaxNameBytes || !is_valid_utf8(tool.name)) {
    return make_error(ErrorKind::kUnmet, fmt::format("{}: a name has 1 to {} bytes of UTF-8, not {}", tool_label(tool),
                                                     kMaxNameBytes, tool.name.size()));
  }
  const bool has_sign = tool.name.find_first_of(syntax_.name_end) != std::string::npos;
  if (writes_json() || (is_bare_name(tool.name) && !has_sign)) return {};
  return make_error(ErrorKind::kUnmet, fmt::format("{}: calls of the model's template cannot name it", tool_label(tool)));
}

Result<Part> CallWriter::any_call(std::span<const GuideTool> tools) {
  std::vector<NamedPart> parts;
  std::vector<RuleId> rules;
  for (const GuideTool& tool : tools) {
    KVASIR_CHECKED(check_name(tool));
    KVASIR_TRY(rules.emplace_back(), arguments(tool));
    const Part rest = behind_name(GrammarBuilder::rule(rules.back()));
    parts.push_back({.name = writes_json() ? in_quotes(tool.name) : tool.name, .rest = rest});
  }
  const std::vector<bool> has_text = builder_.rules_with_text();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    if (has_text[rules[i]]) continue;
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}: no arguments satisfy the schema, or calls of the model's template cannot write them",
                                  tool_label(tools[i])));
  }
  std::ranges::sort(parts, {}, &NamedPart::name);
  return builder_.sequence(std::array{before_name(), by_name(parts, 0), behind_call()});
}

// Many names that begin alike share what they begin with, so that few places run at once.
Part CallWriter::by_name(std::span<const NamedPart> parts, std::size_t depth) {
  std::vector<Part> choices;
  if (parts.size() <= kMostBranches) {
    for (const NamedPart& part : parts) {
      choices.push_back(builder_.sequence(std::array{plain(std::string_view(part.name).substr(depth)), part.rest}));
    }
    return builder_.choice(choices);
  }
  for (std::size_t begin = 0; begin < parts.size();) {
    const std::string_view first = std::string_view(parts[begin].name).substr(depth);
    if (first.empty()) {
      choices.push_back(parts[begin++].rest);
      continue;
    }
    const std::string_view character = first.substr(0, character_bytes(first));
    std::size_t end = begin + 1;
    while (end < parts.size() && std::string_view(parts[end].name).substr(depth).starts_with(character)) ++end;
    const std::size_t shared = common_bytes(first, std::string_view(parts[end - 1].name).substr(depth));
    const Part rest = by_name(parts.subspan(begin, end - begin), depth + shared);
    choices.push_back(builder_.sequence(std::array{plain(first.substr(0, shared)), rest}));
    begin = end;
  }
  return builder_.choice(choices);
}

// As a rule: the same arguments stand at several places.
Result<RuleId> CallWriter::arguments(const GuideTool& tool) {
  auto part = lower_arguments(tool);
  if (!part) return make_error(part.error().kind, fmt::format("{}: {}", tool_label(tool), part.error().message));
  if (store_.is_exhausted()) {
    return make_error(ErrorKind::kUnmet, fmt::format("{}: the schemas make too many states", tool_label(tool)));
  }
  const RuleId rule = builder_.declare(tool.name);
  builder_.define(rule, *part);
  return rule;
}

Result<Part> CallWriter::lower_arguments(const GuideTool& tool) {
  KVASIR_TRY(auto schema, read_json(tool.schema.empty() ? kAnyObject : std::string_view(tool.schema)));
  const JsonValue& root = *schemas_.emplace_back(std::move(schema));
  SchemaEvaluator evaluator(root, store_, derivatives_);
  // Models invent members where a schema leaves them open.
  const SchemaOptions options = {.blanks = syntax_.layout == kDict ? JsonBlanks::kCompact : JsonBlanks::kFlexible,
                                 .closes_objects = true};
  SchemaLowering lowering(evaluator, builder_, options);
  const SchemaName name = evaluator.name_of(root);
  switch (syntax_.layout) {
    case kJson:
    case kNamedJson:
    case kKeyedJson: {
      JsonForm form(lowering);
      return lowering.lower_objects(name, form);
    }
    case kDict: {
      lowering.set_form(std::make_unique<DictForm>(lowering, marks_, syntax_.quote));
      DictForm form(lowering, marks_, syntax_.quote);
      return lowering.lower_objects(name, form);
    }
    case kPythonic: {
      lowering.set_form(std::make_unique<PythonForm>(lowering));
      PythonArguments form(lowering);
      return lowering.lower_objects(name, form);
    }
    case kTagged:
    case kNested:
      break;
  }
  TaggedArguments form(lowering, marks_, syntax_, tool.text_arguments);
  lowering.set_form(std::make_unique<ConfinedJson>(lowering, form.texts()));
  auto part = lowering.lower_objects(name, form);
  if (part && !form.status()) return std::unexpected(form.status().error());
  return part;
}

Part CallWriter::call_index() {
  if (syntax_.index_open.empty()) return GrammarBuilder::text(kEmptyText);
  const TermId digit = store_.char_class(CodePointSet::of('0', '9'));
  return builder_.sequence(std::array{marks_.part(syntax_.index_open), GrammarBuilder::text(store_.repeat(digit, 1, 3)),
                                      marks_.part(syntax_.index_close)});
}

Part CallWriter::json_id_member(bool is_first) {
  const Part id = builder_.sequence(std::array{plain("\""), identifier(syntax_.min_id_chars, syntax_.max_id_chars), plain("\"")});
  const Part member = builder_.sequence(std::array{quoted(syntax_.id_key), gap(), plain(":"), gap(), id, gap()});
  const Part comma = builder_.sequence(std::array{plain(","), gap()});
  return optional(is_first ? builder_.sequence(std::array{member, comma}) : builder_.sequence(std::array{comma, member}));
}

Part CallWriter::before_name() {
  switch (syntax_.layout) {
    case kJson: {
      const Part id = !syntax_.id_key.empty() && syntax_.is_id_first ? json_id_member(/*is_first=*/true)
                                                                      : GrammarBuilder::text(kEmptyText);
      return builder_.sequence(std::array{plain("{"), gap(), id, quoted(syntax_.name_key), gap(), plain(":"), gap(), plain("\"")});
    }
    case kKeyedJson:
      return builder_.sequence(std::array{plain("{"), gap(), plain("\"")});
    case kNamedJson: {
      const Part id = syntax_.name_mark.empty() ? GrammarBuilder::text(kEmptyText) : identifier(1, 32);
      return builder_.sequence(std::array{id, marks_.part(syntax_.name_mark), marks_.part(syntax_.before_name)});
    }
    case kDict:
      return plain("call:");
    case kPythonic:
      return GrammarBuilder::text(kEmptyText);
    case kTagged:
    case kNested:
      break;
  }
  return syntax_.call_open == syntax_.open[0] ? GrammarBuilder::text(kEmptyText) : marks_.part(syntax_.call_open);
}

Part CallWriter::behind_name(const Part& arguments) {
  switch (syntax_.layout) {
    case kJson:
    case kKeyedJson:
      return behind_json_name(arguments);
    case kNamedJson:
      return behind_plain_name(arguments);
    case kDict:
    case kPythonic:
      return arguments;
    case kTagged:
    case kNested:
      break;
  }
  return behind_tagged_name(arguments);
}

Part CallWriter::behind_json_name(const Part& arguments) {
  if (syntax_.layout == kKeyedJson) {
    return builder_.sequence(std::array{plain("\""), gap(), plain(":"), gap(), arguments});
  }
  return builder_.sequence(std::array{plain("\""), gap(), plain(","), gap(), quoted(syntax_.arguments_key), gap(),
                                      plain(":"), gap(), arguments});
}

Part CallWriter::behind_plain_name(const Part& arguments) {
  std::vector<Part> parts = {call_index()};
  if (syntax_.name_end.contains('\n')) parts.push_back(plain("\n"));
  if (!syntax_.call_id_mark.empty()) {
    parts.push_back(optional(builder_.sequence(std::array{marks_.part(syntax_.call_id_mark), identifier(9, 9)})));
  }
  if (!syntax_.before_mark.empty()) parts.push_back(optional(marks_.part(syntax_.before_mark)));
  parts.push_back(marks_.part(syntax_.arguments_mark));
  parts.push_back(gap());
  parts.push_back(arguments);
  return builder_.sequence(parts);
}

Part CallWriter::behind_tagged_name(const Part& arguments) {
  Part end = syntax_.name_close.empty() ? plain("\n") : marks_.part(syntax_.name_close);
  // The arguments of this call are told from those of the one before; a scope that does not close hides it.
  if (end.kind == Part::Kind::kTerminal) end = GrammarBuilder::marked(end, kOpensScope);
  return builder_.sequence(std::array{call_index(), end, arguments});
}

Part CallWriter::behind_call() {
  switch (syntax_.layout) {
    case kJson: {
      const bool has_id = !syntax_.id_key.empty() && !syntax_.is_id_first;
      const Part id = has_id ? json_id_member(/*is_first=*/false) : GrammarBuilder::text(kEmptyText);
      return builder_.sequence(std::array{gap(), id, plain("}")});
    }
    case kKeyedJson:
      return builder_.sequence(std::array{gap(), plain("}")});
    case kNamedJson:
      if (syntax_.after_arguments.empty()) return GrammarBuilder::text(kEmptyText);
      return builder_.sequence(std::array{gap(), marks_.part(syntax_.after_arguments)});
    case kDict:
    case kPythonic:
      return GrammarBuilder::text(kEmptyText);
    case kTagged:
    case kNested:
      break;
  }
  return builder_.sequence(std::array{gap(), marks_.part(syntax_.call_close)});
}

}  // namespace kvasir::grammar
