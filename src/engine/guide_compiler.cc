#include "engine/guide_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/json_schema.h"

namespace kvasir {
namespace {

constexpr std::size_t kMaxSchemaBytes = 1 << 20;
constexpr std::size_t kMaxChoices = 10'000;

std::string guide_key(const Guide& guide) {
  std::string key = fmt::format("{}:{}:{}", static_cast<int>(guide.kind), guide.text.size(), guide.text);
  for (const std::string& choice : guide.choices) key += fmt::format("{}:{}", choice.size(), choice);
  return key;
}

Status check_guide(const Guide& guide) {
  if (guide.text.size() > kMaxSchemaBytes) {
    return make_error(ErrorKind::kUnmet,
                      fmt::format("guide: {} bytes (at most {})", guide.text.size(), kMaxSchemaBytes), "guide");
  }
  if (guide.choices.size() > kMaxChoices) {
    return make_error(ErrorKind::kUnmet,
                      fmt::format("guide: {} choices (at most {})", guide.choices.size(), kMaxChoices), "guide");
  }
  for (const std::string& choice : guide.choices) {
    if (choice.empty()) return make_error(ErrorKind::kUsage, "guide: a choice is empty", "guide");
    if (!is_valid_utf8(choice)) return make_error(ErrorKind::kUsage, "guide: a choice is not UTF-8", "guide");
  }
  return {};
}

Result<grammar::Grammar> make_grammar(const Guide& guide, grammar::TermStore& store) {
  if (guide.kind == Guide::Kind::kJsonSchema) {
    KVASIR_TRY(grammar::SchemaGrammar made, grammar::grammar_from_schema(store, guide.text));
    return std::move(made.grammar);
  }
  grammar::TermId texts = grammar::kNothing;
  if (guide.kind == Guide::Kind::kRegex) {
    KVASIR_TRY(texts, grammar::pattern_language(store, guide.text, grammar::PatternFit::kWhole));
  } else {
    texts = store.literals({guide.choices.begin(), guide.choices.end()});
  }
  grammar::GrammarBuilder builder(store);
  const grammar::RuleId start = builder.declare("guide");
  builder.define(start, grammar::GrammarBuilder::text(texts));
  return builder.finish(start);
}

}  // namespace

std::shared_ptr<const grammar::Vocabulary> GuideCompiler::vocabulary() {
  const std::lock_guard lock(mutex_);
  if (vocabulary_ == nullptr) {
    std::vector<std::string_view> tokens;
    for (TokenId id = 0; id < tokenizer_->vocab().num_tokens(); ++id) tokens.push_back(tokenizer_->decode_token(id));
    vocabulary_ = std::make_shared<const grammar::Vocabulary>(tokens);
  }
  return vocabulary_;
}

Result<std::shared_ptr<const grammar::CompiledGrammar>> GuideCompiler::compile(const Guide& guide) {
  if (tokenizer_ == nullptr) {
    return make_error(ErrorKind::kUsage, "guide: the model has no tokenizer, so that no answer can be guided", "guide");
  }
  KVASIR_CHECKED(check_guide(guide));
  const std::string key = guide_key(guide);
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, key, &std::pair<std::string, Compiled>::first);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front().second;
    }
  }
  auto store = std::make_unique<grammar::TermStore>();
  auto rules = make_grammar(guide, *store);
  if (!rules) return make_error(rules.error().kind, "guide: " + rules.error().message, "guide");
  auto compiled = grammar::CompiledGrammar::create(std::move(store), std::move(*rules), vocabulary());
  if (!compiled) return make_error(compiled.error().kind, compiled.error().message, "guide");
  const std::lock_guard lock(mutex_);
  kept_.emplace_front(key, *compiled);
  if (kept_.size() > kMaxKept) kept_.pop_back();
  return *compiled;
}

}  // namespace kvasir
