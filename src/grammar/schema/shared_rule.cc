#include <algorithm>
#include <numeric>

#include "grammar/regex/fingerprint.h"
#include "grammar/schema/cells.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxScanned = 8;

}  // namespace

std::size_t SharedRule::hash_of(const MemberRule& rule) {
  Fingerprint hash(rule.others);
  hash.add((rule.has_others ? 1U : 0U) + (rule.is_assertion ? 2U : 0U));
  hash.add(rule.doubtful);
  for (const auto& [key, value] : rule.properties) {
    hash.add(std::string_view(key));
    hash.add(value);
  }
  for (const auto& [keys, value] : rule.patterns) hash.add(std::uint64_t{keys} << 32 | value);
  return hash.value().first;
}

SharedRule::Order SharedRule::order_of(const MemberRule& rule) {
  if (rule.properties.size() <= kMaxScanned) return nullptr;
  std::vector<std::uint32_t> order(rule.properties.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t place) -> const std::string& { return rule.properties[place].first; });
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
}

std::vector<SchemaName> SharedRule::values_of(std::string_view key) const {
  std::vector<SchemaName> values;
  if (order_ == nullptr) {
    for (const auto& [property, value] : rule_->properties) {
      if (property == key) values.push_back(value);
    }
    return values;
  }
  const auto key_at = [&](std::uint32_t place) { return std::string_view(rule_->properties[place].first); };
  for (const std::uint32_t place : std::ranges::equal_range(*order_, key, {}, key_at)) {
    values.push_back(rule_->properties[place].second);
  }
  return values;
}

}  // namespace kvasir::grammar
