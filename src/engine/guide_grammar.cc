#include "engine/guide_grammar.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/utf8.h"
#include "grammar/ebnf/ebnf_grammar.h"
#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/json_schema.h"
#include "grammar/shipped/shipped_grammars.h"
#include "grammar/tags/structural_tag.h"
#include "grammar/tags/tool_grammar.h"

namespace kvasir {
namespace {

using grammar::GrammarBuilder;
using grammar::TermId;
using grammar::TermStore;

constexpr std::size_t kMaxSchemaBytes = 1 << 20;
constexpr std::size_t kMaxGrammarBytes = 256 << 10;
constexpr std::size_t kMaxRegexBytes = 16 << 10;
constexpr std::size_t kMaxChoices = 10'000;
constexpr std::size_t kMaxIgnored = 16;  // keywords that are told
constexpr std::uint32_t kMaxBlanks = 8;  // behind reasoning

Status check_size(std::string_view name, std::size_t size, std::size_t most) {
  if (size <= most) return {};
  return make_error(ErrorKind::kUnmet, fmt::format("{} bytes of {}, the limit is {}", size, name, most));
}

// `name`: of one of them.
Status check_texts(std::string_view name, const std::vector<std::string>& texts) {
  if (texts.size() > kMaxChoices) {
    return make_error(ErrorKind::kUnmet, fmt::format("{} {}s, the limit is {}", texts.size(), name, kMaxChoices));
  }
  std::size_t num_bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) return make_error(ErrorKind::kUsage, fmt::format("{} {} is empty", name, i));
    if (!is_valid_utf8(texts[i])) return make_error(ErrorKind::kUsage, fmt::format("{} {} is not UTF-8", name, i));
    num_bytes += texts[i].size();
  }
  return check_size(fmt::format("{}s", name), num_bytes, kMaxSchemaBytes);
}

// Texts in which none of these occurs.
TermId texts_without(const std::vector<std::string>& excluded, TermStore& store) {
  const TermId any = store.any_text();
  const TermId words = store.literals({excluded.begin(), excluded.end()});
  return store.complement(store.concat(std::array{any, words, any}));
}

grammar::Grammar grammar_of_texts(TermId texts, TermStore& store) {
  GrammarBuilder builder(store);
  const grammar::RuleId start = builder.declare("guide");
  builder.define(start, GrammarBuilder::text(texts));
  return builder.finish(start);
}

// The texts of a guide that is a regular language, but for those that it excludes.
Result<TermId> named_texts_of(const Guide& guide, TermStore& store) {
  switch (guide.kind) {
    case Guide::Kind::kRegex:
      KVASIR_CHECKED(check_size("regular expression", guide.text.size(), kMaxRegexBytes));
      return grammar::pattern_language(store, guide.text, grammar::PatternFit::kWhole);
    case Guide::Kind::kChoice:
      if (guide.choices.empty()) return make_error(ErrorKind::kUsage, "there is no choice");
      KVASIR_CHECKED(check_texts("choice", guide.choices));
      return store.literals({guide.choices.begin(), guide.choices.end()});
    case Guide::Kind::kText:
      return store.any_text();
    case Guide::Kind::kJsonSchema:
    case Guide::Kind::kGbnf:
    case Guide::Kind::kXGrammar:
    case Guide::Kind::kStructuralTag:
      break;
  }
  return make_error(ErrorKind::kUnmet, "a grammar is not supported beside tools");
}

Result<TermId> texts_of(const Guide& guide, TermStore& store) {
  KVASIR_TRY(TermId texts, named_texts_of(guide, store));
  if (!guide.excluded.empty()) {
    KVASIR_CHECKED(check_texts("excluded text", guide.excluded));
    texts = store.all_of({texts, texts_without(guide.excluded, store)});
  }
  return grammar::Derivatives(store).is_alive(texts) ? texts : grammar::kNothing;
}

grammar::SchemaOptions schema_options(const Guide& guide) {
  return {.blanks = guide.is_compact ? grammar::JsonBlanks::kCompact : grammar::JsonBlanks::kFlexible,
          .closes_objects = guide.is_strict};
}

Result<GuideGrammar> grammar_of_schema(const Guide& guide, TermStore& store) {
  KVASIR_CHECKED(check_size("schema", guide.text.size(), kMaxSchemaBytes));
  KVASIR_TRY(grammar::SchemaGrammar made,
             grammar::grammar_from_schema(store, guide.text, schema_options(guide)));
  GuideGrammar found = {.grammar = std::move(made.grammar)};
  for (const std::string& pointer : made.ignored) {
    if (found.ignored.size() == kMaxIgnored) break;
    found.ignored.push_back(printable(pointer));
  }
  return found;
}

grammar::TokenNames token_names(const text::Tokenizer& tokenizer) {
  return {.find = [&tokenizer](std::string_view text) -> std::optional<TokenId> {
            const auto tokens = tokenizer.encode(text, {.parse_special = true, .add_special = false});
            return tokens.size() == 1 ? std::optional(tokens.front()) : std::nullopt;
          },
          .num_tokens = tokenizer.vocab().num_tokens(),
          .has_text = [&tokenizer](TokenId token) { return !tokenizer.decode_token(token).empty(); }};
}

// Without its reasoning.
Result<grammar::Grammar> grammar_of_answer(const Guide& guide, const text::Tokenizer& tokenizer, TermStore& store) {
  const bool is_regular = guide.kind == Guide::Kind::kRegex || guide.kind == Guide::Kind::kChoice ||
                          guide.kind == Guide::Kind::kText;
  if (is_regular) {
    KVASIR_TRY(const TermId texts, texts_of(guide, store));
    return grammar_of_texts(texts, store);
  }
  if (!guide.excluded.empty()) {
    return make_error(ErrorKind::kUnmet, "texts can be excluded from regular expressions and choices alone");
  }
  KVASIR_CHECKED(check_size("grammar", guide.text.size(), kMaxGrammarBytes));
  if (guide.kind == Guide::Kind::kStructuralTag) {
    return grammar::grammar_from_structural_tag(
        store, guide.text, {.schema = schema_options(guide), .tokens = token_names(tokenizer)});
  }
  const auto shipped = grammar::shipped_grammar(guide.text);
  const bool is_gbnf = shipped || guide.kind == Guide::Kind::kGbnf;
  return grammar::grammar_from_ebnf(
      store, shipped.value_or(guide.text),
      {.dialect = is_gbnf ? grammar::EbnfDialect::kGbnf : grammar::EbnfDialect::kXGrammar, .tokens = token_names(tokenizer)});
}

// Calls, or an answer of the guide.
Result<grammar::Grammar> grammar_beside_calls(const Guide& guide, std::span<const grammar::ControlToken> tokens,
                                              TermStore& store) {
  if (!guide.excluded.empty()) return make_error(ErrorKind::kUnmet, "no texts can be excluded beside tools");
  grammar::AnswerText text = {.is_free = guide.kind == Guide::Kind::kText};
  if (guide.kind == Guide::Kind::kJsonSchema) {
    KVASIR_CHECKED(check_size("schema", guide.text.size(), kMaxSchemaBytes));
    text.schema = guide.text;
    text.options = schema_options(guide);
  } else {
    KVASIR_TRY(text.texts, texts_of(guide, store));
  }
  return grammar::grammar_of_tools(store, *guide.tools, tokens, text);
}

// The control token that shows as this text; kNoToken: it is plain text.
TokenId control_token(const text::Tokenizer& tokenizer, std::string_view text) {
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    if (tokenizer.vocab().is_hidden(id) && tokenizer.decode_token(id, /*render_special=*/true) == text) return id;
  }
  return kNoToken;
}

// Tokens that show as nothing.
std::vector<grammar::ControlToken> control_tokens(const text::Tokenizer& tokenizer) {
  std::vector<grammar::ControlToken> tokens;
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    if (!tokenizer.vocab().is_hidden(id)) continue;
    tokens.push_back({.text = std::string(tokenizer.decode_token(id, /*render_special=*/true)),
                      .id = id,
                      .ends_answer = tokenizer.vocab().is_end_of_generation(id)});
  }
  return tokens;
}

// Puts a block of reasoning before a finished grammar.
class ReasoningPrefix {
 public:
  // All outlive this.
  ReasoningPrefix(const text::Tokenizer& tokenizer, TermStore& store, grammar::Grammar& grammar)
      : tokenizer_(tokenizer), store_(store), grammar_(grammar) {}

  void add(const Guide::Reasoning& marks) {
    const NodeId start = node(), thought = node(), behind = node(), answer = node(), end = node();
    grammar_.nodes[end].is_final = true;
    if (marks.open.empty()) {
      edge(start, Edge::Kind::kSkip, 0, thought);
    } else {
      add_mark(start, marks.open, thought);
      edge(start, Edge::Kind::kSkip, 0, answer);
    }
    const TermId any = store_.any_text();
    const TermId with_mark = store_.concat(std::array{any, store_.literal(marks.close), any});
    const TermId thoughts = store_.without(any, with_mark);
    if (control_token(tokenizer_, marks.close) == kNoToken) {
      add_text(thought, store_.concat(thoughts, store_.literal(marks.close)), behind);
    } else {
      const NodeId closing = node();
      add_text(thought, thoughts, closing);
      add_mark(closing, marks.close, behind);
    }
    const TermId blank = store_.any_of({store_.literal(" "), store_.literal("\t"), store_.literal("\n")});
    add_text(behind, store_.repeat(blank, 0, kMaxBlanks), answer);
    edge(answer, Edge::Kind::kRule, grammar_.start, end);
    grammar_.start = static_cast<grammar::RuleId>(grammar_.rules.size());
    grammar_.rules.push_back({.start = start, .name = "reasoning"});
  }

 private:
  using Edge = grammar::Edge;
  using NodeId = grammar::NodeId;

  NodeId node() {
    grammar_.nodes.emplace_back();
    grammar_.loop_of.push_back(-1);
    return static_cast<NodeId>(grammar_.nodes.size() - 1);
  }
  void edge(NodeId from, Edge::Kind kind, std::uint32_t value, NodeId to) {
    grammar_.nodes[from].edges.push_back({.kind = kind, .value = value, .target = to});
  }
  void add_mark(NodeId from, std::string_view mark, NodeId to) {
    const TokenId token = control_token(tokenizer_, mark);
    if (token == kNoToken) return add_text(from, store_.literal(mark), to);
    edge(from, Edge::Kind::kToken, static_cast<std::uint32_t>(token), to);
  }
  void add_text(NodeId from, TermId texts, NodeId to) {
    if (store_.is_nullable(texts)) edge(from, Edge::Kind::kSkip, 0, to);
    grammar_.terminals.push_back({store_.without_empty_text(texts), grammar::TextForm::kPlain});
    edge(from, Edge::Kind::kTerminal, static_cast<std::uint32_t>(grammar_.terminals.size() - 1), to);
  }

  const text::Tokenizer& tokenizer_;
  TermStore& store_;
  grammar::Grammar& grammar_;
};

}  // namespace

Result<GuideGrammar> grammar_of(const Guide& guide, const text::Tokenizer& tokenizer, TermStore& store) {
  GuideGrammar found;
  if (guide.tools) {
    KVASIR_TRY(found.grammar, grammar_beside_calls(guide, control_tokens(tokenizer), store));
    return found;
  }
  if (guide.kind == Guide::Kind::kJsonSchema && guide.excluded.empty()) {
    KVASIR_TRY(found, grammar_of_schema(guide, store));
  } else {
    KVASIR_TRY(found.grammar, grammar_of_answer(guide, tokenizer, store));
  }
  grammar::Grammar& grammar = found.grammar;
  if (guide.reasoning && !grammar.rules.empty()) ReasoningPrefix(tokenizer, store, grammar).add(*guide.reasoning);
  return found;
}

}  // namespace kvasir
