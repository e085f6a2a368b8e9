// Values of which none comes twice in a list.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/schema/inhabited.h"
#include "grammar/schema/lowering.h"
#include "grammar/schema/text_number.h"

namespace kvasir::grammar {
namespace {

constexpr std::uint16_t kTextGroup = 0x8000;  // of strings, which some forms write without quotes

std::unexpected<Error> unsupported() {
  return make_error(ErrorKind::kUnmet,
                    "uniqueItems is supported for texts, numbers, words, and objects that share a required member of "
                    "these; other items are not told apart",
                    "uniqueItems");
}

// A member by which objects of a list are told apart.
struct SharedMember {
  std::string key;
  bool has_many = false;  // values, in every case
  int rank = 0;
};

// Members by which people name things.
int name_rank(std::string_view key) {
  static constexpr std::array kNames = std::to_array<std::string_view>({"id", "uuid", "key", "name", "url", "path"});
  return static_cast<int>(std::ranges::find(kNames, key) - kNames.begin());
}

// How the key's value may be recorded, over all cases.
std::optional<SharedMember> shared_member(SchemaLowering& lowering, const std::vector<ObjectCell>& objects,
                                          const std::string& key) {
  SharedMember member = {.key = key, .has_many = true, .rank = name_rank(key)};
  for (const ObjectCell& object : objects) {
    if (std::ranges::find(object.required, key) == object.required.end()) return std::nullopt;
    const SchemaName value = member_value(lowering.evaluator(), object, key);
    const Cells* cells = lowering.evaluator().cells_if_known(value);
    if (cells == nullptr) return std::nullopt;
    const bool has_word = cells->has_null || cells->has_true || cells->has_false;
    if (!has_word && cells->numbers.empty() && cells->strings.empty()) return std::nullopt;
    if (!cells->arrays.empty() || !cells->objects.empty()) member.rank += 16;
    std::uint32_t most = 0;  // texts of one kind
    for (const StringCell& cell : cells->strings) {
      most = std::max(most, text_number(lowering.evaluator(), cell.texts));
      if (!cell.is_free) member.rank += 8;
    }
    for (const NumberSet& set : cells->numbers) {
      const auto texts = distinct_number_texts(lowering.store(), set);
      if (texts) most = std::max(most, text_number(lowering.evaluator(), *texts));
    }
    member.has_many = member.has_many && most == kManyTexts;
  }
  return member;
}

}  // namespace

Result<SchemaLowering::RecordedValues> SchemaLowering::recorded_values(SchemaName name, const TextMark& mark) {
  KVASIR_TRY(const Cells* found, evaluator_.cells(name));
  const Cells cells = *found;
  RecordedValues values;
  std::vector<Part> parts;
  const auto add = [&](Part part, std::uint32_t count) {
    if (count == 0) return;
    parts.push_back(std::move(part));
    values.num_values = std::min(values.num_values + count, kManyTexts);
  };
  if (cells.has_null) add(GrammarBuilder::marked(form_->word("null"), mark), 1);
  if (cells.has_true) add(GrammarBuilder::marked(form_->word("true"), mark), 1);
  if (cells.has_false) add(GrammarBuilder::marked(form_->word("false"), mark), 1);
  std::vector<TermId> numbers;
  for (const NumberSet& set : cells.numbers) {
    KVASIR_TRY(numbers.emplace_back(), distinct_number_texts(store(), set));
  }
  const TermId number = store().any_of(std::move(numbers));
  add(GrammarBuilder::text(Terminal{number, TextForm::kPlain, mark}), text_number(evaluator_, number));
  std::vector<TermId> strings;
  for (const StringCell& cell : cells.strings) strings.push_back(cell.texts);
  const StringCell string = {.texts = store().any_of(std::move(strings)), .is_free = false};
  TextMark text_mark = mark;
  text_mark.group ^= kTextGroup;
  text_mark.may_run_out = string.texts != store().any_text();
  add(form_->string(string, text_mark), text_number(evaluator_, string.texts));
  // Lists, and objects that cannot be told apart, are left out where there is something else.
  const bool are_alone = values.num_values == 0;
  if (!cells.objects.empty() && !mark.is_outer) {
    auto objects = recorded_objects(cells.objects, are_alone);
    if (!objects && are_alone) return std::unexpected(objects.error());
    if (objects) add(std::move(objects->part), objects->num_values);
  }
  if (parts.empty() && !cells.arrays.empty()) return unsupported();
  values.part = builder_.choice(parts);
  return values;
}

// Objects whose values of one member differ.
Result<SchemaLowering::RecordedValues> SchemaLowering::recorded_objects(const std::vector<ObjectCell>& objects,
                                                                        bool are_alone) {
  std::optional<SharedMember> best;
  for (const std::string& key : objects[0].required) {
    const std::optional<SharedMember> member = shared_member(*this, objects, key);
    // Few values of one case may be used up behind its first members.
    if (!member || (!member->has_many && (!are_alone || objects.size() > 1))) continue;
    const bool is_better = !best || (member->has_many && !best->has_many) ||
                           (member->has_many == best->has_many && member->rank < best->rank);
    if (is_better) best = member;
  }
  if (!best) return unsupported();
  const bool was_at_root = is_at_root_;
  is_at_root_ = false;
  RecordedValues values;
  std::vector<Part> parts;
  const TextMark mark = {.kind = TextMark::Kind::kRecord,
                         .is_outer = true,
                         .group = static_cast<std::uint16_t>(std::hash<std::string>()(best->key) % kTextGroup)};
  for (const ObjectCell& object : objects) {
    KVASIR_TRY(const RecordedValues member, recorded_values(member_value(evaluator_, object, best->key), mark));
    const RuleId value = builder_.declare({});
    builder_.define(value, member.part);
    const Part part = GrammarBuilder::rule(value);
    KVASIR_TRY(parts.emplace_back(), lower_object(*this, object, *form_, best->key, &part));
    values.num_values = std::min(values.num_values + member.num_values, kManyTexts);
  }
  is_at_root_ = was_at_root;
  values.part = builder_.choice(parts);
  return values;
}

}  // namespace kvasir::grammar
