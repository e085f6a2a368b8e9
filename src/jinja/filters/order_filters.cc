#include <algorithm>

#include "jinja/access.h"
#include "jinja/comparison.h"
#include "jinja/filters/filter_tables.h"

namespace kvasir::jinja {
namespace {

// An item and what it is ordered or told apart by.
struct Keyed {
  Value key;
  Value item;
};

struct KeyRule {
  Value attribute;  // none: the item itself
  bool case_sensitive = false;
  Value if_undefined;  // missing or none: undefined stays undefined
};

Result<Value> key_of(Runtime& runtime, const Value& item, const KeyRule& rule) {
  KVASIR_TRY(Value key, attribute_of(runtime, item, rule.attribute));
  if (key.is_undefined() && !rule.if_undefined.is_undefined() && !rule.if_undefined.is_none())
    key = rule.if_undefined;
  if (rule.case_sensitive || !key.is_string()) return key;
  KVASIR_CHECKED(runtime.charge_bytes(key.as_string().size()));
  return ignoring_case(key);
}

// For sort, whose attribute may name several ("age,name"): the key is the list of all.
Result<Value> list_key_of(Runtime& runtime, const Value& item, const KeyRule& rule) {
  std::vector<Value> keys;
  KeyRule part = rule;
  std::string_view names = rule.attribute.is_string() ? rule.attribute.as_string() : std::string_view();
  while (true) {
    const std::size_t comma = std::min(names.find(','), names.size());
    if (rule.attribute.is_string()) part.attribute = Value::string(std::string(names.substr(0, comma)));
    KVASIR_TRY(Value key, key_of(runtime, item, part));
    keys.push_back(std::move(key));
    if (comma == names.size()) return runtime.make_list(std::move(keys));
    names.remove_prefix(comma + 1);
  }
}

Result<std::vector<Keyed>> keyed_items(Runtime& runtime, const Value& self, const KeyRule& rule,
                                       Result<Value> (*make_key)(Runtime&, const Value&, const KeyRule&)) {
  KVASIR_TRY(const auto source, iterate(runtime, self));
  std::vector<Keyed> keyed;
  keyed.reserve(source->items.size());
  for (const Value& item : source->items) {
    KVASIR_TRY(Value key, make_key(runtime, item, rule));
    keyed.push_back({std::move(key), item});
  }
  return keyed;
}

const Value& key_field(const Keyed& keyed) { return keyed.key; }

Value or_none(const Value& argument) { return argument.is_missing() ? Value::none() : argument; }

Result<Value> sort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const KeyRule rule{.attribute = or_none(arguments.positional[2]),
                     .case_sensitive = flag_argument(arguments.positional[1], false),
                     .if_undefined = {}};
  KVASIR_TRY(auto keyed, keyed_items(runtime, self, rule, list_key_of));
  KVASIR_CHECKED(sort_values(runtime, keyed, key_field, flag_argument(arguments.positional[0], false)));
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return runtime.make_list(std::move(items));
}

Result<Value> dictsort(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!self.is_dict()) return template_error("dictsort needs a mapping, not '{}'", self.type_name());
  KVASIR_TRY(const std::string by, string_argument(arguments.positional[1], "by", "key"));
  if (by != "key" && by != "value") return template_error("dictsort: by must be 'key' or 'value'");
  const bool case_sensitive = flag_argument(arguments.positional[0], false);
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : self.as_dict().entries()) {
    const Value& sorted_by = by == "key" ? key : value;
    KVASIR_TRY(Value pair, runtime.make_list({key, value}, ListKind::kTuple));
    keyed.push_back({case_sensitive ? sorted_by : ignoring_case(sorted_by), std::move(pair)});
  }
  KVASIR_CHECKED(sort_values(runtime, keyed, key_field, flag_argument(arguments.positional[2], false)));
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return runtime.make_list(std::move(items));
}

Result<Value> unique(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const KeyRule rule{.attribute = or_none(arguments.positional[1]),
                     .case_sensitive = flag_argument(arguments.positional[0], false),
                     .if_undefined = {}};
  KVASIR_TRY(auto keyed, keyed_items(runtime, self, rule, key_of));
  // A dict from key to position drops repeats exactly as a set of keys would.
  std::vector<Value::Entry> positions;
  for (std::size_t i = keyed.size(); i-- > 0;) {
    positions.emplace_back(keyed[i].key, Value::integer(static_cast<std::int64_t>(i)));
  }
  KVASIR_TRY(const Value first_seen, runtime.make_dict(std::move(positions)));
  std::vector<bool> is_first(keyed.size(), false);
  for (const auto& entry : first_seen.as_dict().entries()) {
    is_first[static_cast<std::size_t>(entry.second.as_int())] = true;
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (is_first[i]) items.push_back(std::move(keyed[i].item));
  }
  return runtime.make_generator(std::move(items));
}

template <bool kMaximum>
Result<Value> extreme(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const KeyRule rule{.attribute = or_none(arguments.positional[1]),
                     .case_sensitive = flag_argument(arguments.positional[0], false),
                     .if_undefined = {}};
  KVASIR_TRY(const auto keyed, keyed_items(runtime, self, rule, key_of));
  if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  std::size_t best = 0;
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    KVASIR_TRY(const auto result, order(runtime, keyed[i].key, keyed[best].key));
    if (kMaximum ? result > 0 : result < 0) best = i;
  }
  return keyed[best].item;
}

// (grouper, items) for each distinct value of the attribute, in its order.
Result<Value> groupby(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KeyRule rule{.attribute = arguments.positional[0],
               .case_sensitive = flag_argument(arguments.positional[2], false),
               .if_undefined = arguments.positional[1]};
  KVASIR_TRY(auto keyed, keyed_items(runtime, self, rule, key_of));
  KVASIR_CHECKED(sort_values(runtime, keyed, key_field, false));
  rule.case_sensitive = true;
  std::vector<Value> groups;
  for (std::size_t i = 0; i < keyed.size();) {
    std::vector<Value> members;
    std::size_t j = i;
    for (; j < keyed.size(); ++j) {
      KVASIR_TRY(const bool same, equal(runtime, keyed[i].key, keyed[j].key));
      if (!same && j > i) break;
      members.push_back(keyed[j].item);
    }
    // The group shows the case of its first member.
    KVASIR_TRY(Value grouper, key_of(runtime, keyed[i].item, rule));
    KVASIR_TRY(Value list, runtime.make_list(std::move(members)));
    KVASIR_TRY(Value group, runtime.make_list({std::move(grouper), std::move(list)}, ListKind::kGroup));
    groups.push_back(std::move(group));
    i = j;
  }
  return runtime.make_list(std::move(groups));
}

constexpr Builtin kOrderFilters[] = {
    {"dictsort", 0, {"case_sensitive", "by", "reverse"}, dictsort},
    {"groupby", 1, {"attribute", "default", "case_sensitive"}, groupby},
    {"max", 0, {"case_sensitive", "attribute"}, extreme<true>},
    {"min", 0, {"case_sensitive", "attribute"}, extreme<false>},
    {"sort", 0, {"reverse", "case_sensitive", "attribute"}, sort},
    {"unique", 0, {"case_sensitive", "attribute"}, unique},
};

}  // namespace

std::span<const Builtin> order_filters() { return kOrderFilters; }

}  // namespace kvasir::jinja
