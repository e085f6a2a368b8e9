#include "grammar/schema/empty_place.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/derivatives.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/lowering.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxParts = 256;  // looked at in one schema

bool is_of_type(const JsonValue& schema, std::string_view type) {
  const JsonValue* value = schema.find("type");
  return value != nullptr && value->is_string() && value->text == type;
}

void add_required_members(const JsonValue& schema, std::vector<const JsonValue*>& parts) {
  const JsonValue* properties = schema.find("properties");
  const JsonValue* required = schema.find("required");
  if (properties == nullptr || required == nullptr || !required->is_array()) return;
  for (const auto& key : required->children) {
    const JsonValue* member = key->is_string() ? properties->find(key->text) : nullptr;
    if (member != nullptr) parts.push_back(member);
  }
}

// The first element of a list that may not be empty.
void add_elements(const JsonValue& schema, std::vector<const JsonValue*>& parts) {
  const JsonValue* least = schema.find("minItems");
  if (least == nullptr || !least->is_number() || least->text.starts_with('0')) return;
  for (const std::string_view name : {"prefixItems", "items"}) {
    const JsonValue* items = schema.find(name);
    if (items == nullptr) continue;
    const JsonValue* first = items->is_array() && !items->children.empty() ? items->children.front().get() : items;
    if (!first->is_array()) parts.push_back(first);
    return;
  }
}

// Schemas that each value of this one satisfies, or some part of it.
std::vector<const JsonValue*> needed_parts(const SchemaEvaluator& evaluator, const JsonValue& schema) {
  std::vector<const JsonValue*> parts;
  if (!schema.is_object()) return parts;
  if (is_of_type(schema, "object")) add_required_members(schema, parts);
  if (is_of_type(schema, "array")) add_elements(schema, parts);
  if (const JsonValue* all = schema.find("allOf"); all != nullptr && all->is_array()) {
    for (const auto& part : all->children) parts.push_back(part.get());
  }
  if (const JsonValue* reference = schema.find("$ref")) {
    if (const auto target = evaluator.references().resolve(*reference)) parts.push_back(*target);
  }
  if (parts.size() > kMaxParts) parts.resize(kMaxParts);
  return parts;
}

// Keywords that may leave nothing because fewer values are written than they take.
bool may_leave_nothing(const SchemaNote& note) {
  static constexpr std::array kKeywords =
      std::to_array<std::string_view>({"uniqueItems", "unevaluatedItems", "unevaluatedProperties"});
  return std::ranges::find(kKeywords, note.keyword) != kKeywords.end();
}

// The innermost one.
const JsonValue& empty_place(SchemaEvaluator& evaluator, const JsonValue& root, TermStore& store,
                             const SchemaOptions& options) {
  GrammarBuilder builder(store);
  SchemaLowering lowering(evaluator, builder, options);
  const JsonValue* place = &root;
  std::vector<const JsonValue*> seen;  // references may lead round
  while (true) {
    seen.push_back(place);
    const std::vector<const JsonValue*> parts = needed_parts(evaluator, *place);
    std::vector<RuleId> rules;
    for (const JsonValue* part : parts) {
      const Result<RuleId> rule = lowering.lower(evaluator.name_of(*part));
      if (!rule || store.is_exhausted()) return *place;
      rules.push_back(*rule);
    }
    const std::vector<bool> has_text = builder.rules_with_text();
    const auto empty = std::ranges::find_if(rules, [&](RuleId rule) { return !has_text[rule]; });
    if (empty == rules.end()) return *place;
    const JsonValue* next = parts[static_cast<std::size_t>(empty - rules.begin())];
    if (std::ranges::find(seen, next) != seen.end()) return *place;
    place = next;
  }
}

}  // namespace

SchemaNote reason_of_emptiness(const JsonValue& root, TermStore& store, const SchemaOptions& options) {
  Derivatives derivatives(store);
  SchemaEvaluator evaluator(root, store, derivatives);
  evaluator.keep_notes();
  const JsonValue& place = empty_place(evaluator, root, store, options);
  static_cast<void>(evaluator.cells(evaluator.name_of(place)));  // for its notes
  const std::string pointer = place.pointer();
  for (const SchemaNote& note : evaluator.notes().narrowed) {
    if (!may_leave_nothing(note) || note.pointer != pointer + "/" + note.keyword) continue;
    return {note.pointer, note.keyword, note.reason + ", so nothing can be written"};
  }
  return {pointer, place.key, "nothing satisfies the schema"};
}

}  // namespace kvasir::grammar
