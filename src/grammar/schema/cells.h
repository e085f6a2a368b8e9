// Sets of JSON values in a form that intersections, unions and complements do not leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/term.h"
#include "grammar/schema/numbers.h"

namespace kvasir::grammar {

// A conjunction of schemas and complements of schemas, by name (SchemaNames): a set of values that is looked into only
// when it is needed, so that recursion closes.
using SchemaName = std::uint32_t;
inline constexpr SchemaName kAnyValue = 0;
inline constexpr SchemaName kNoValue = 1;

inline constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

// How often an element of a kind is in an array, or a member of a kind in an object.
struct Occurrence {
  SchemaName value = kAnyValue;
  TermId keys = kNothing;     // of a member: its key is one of these
  std::uint32_t from = 0;     // of an element: the first place that counts
  std::uint32_t min = 1;
  std::uint32_t max = kNoLimit;

  friend bool operator==(const Occurrence&, const Occurrence&) = default;
};

// Validators read some patterns and formats differently.
struct StringCell {
  TermId texts = kNothing;    // texts that each of them takes
  TermId perhaps = kNothing;  // texts that any of them takes
  bool is_free = true;  // no pattern, length, format or list of values says how it looks: any escape is fine

  friend bool operator==(const StringCell&, const StringCell&) = default;
};

struct ArrayCell {
  std::vector<SchemaName> prefix = {};  // the first elements
  SchemaName rest = kAnyValue;     // all others
  std::uint32_t num_evaluated = 0; // first elements that a keyword says something about; kNoLimit: all
  std::uint32_t min_items = 0;
  std::uint32_t max_items = kNoLimit;
  std::vector<Occurrence> contains = {};
  bool is_unique = false;

  friend bool operator==(const ArrayCell&, const ArrayCell&) = default;
};

// What one schema says of members by their keys.
struct MemberRule {
  std::vector<std::pair<std::string, SchemaName>> properties = {};  // in the order of the text
  std::vector<std::pair<TermId, SchemaName>> patterns = {};
  TermId doubtful = kNothing;     // keys that only some validators find the patterns in
  SchemaName others = kAnyValue;  // of keys that are in neither
  bool has_others = false;        // the text says so: additionalProperties or unevaluatedProperties
  bool is_assertion = true;       // a schema that holds; false: a value, or a complement, which evaluates nothing

  friend bool operator==(const MemberRule&, const MemberRule&) = default;
};

// A rule that many cells hold: copies share it, and a look tells most of them apart.
//
// Thread safety: none.
class SharedRule {
 public:
  SharedRule(MemberRule rule)  // NOLINT: a rule where a list of rules is wanted
      : hash_(hash_of(rule)), order_(order_of(rule)), rule_(std::make_shared<const MemberRule>(std::move(rule))) {}

  operator const MemberRule&() const { return *rule_; }  // NOLINT: as above
  const MemberRule& get() const { return *rule_; }
  std::size_t hash() const { return hash_; }
  // The properties' values for the key, one for each that has its name.
  std::vector<SchemaName> values_of(std::string_view key) const;

  friend bool operator==(const SharedRule& a, const SharedRule& b) {
    return a.rule_ == b.rule_ || (a.hash_ == b.hash_ && *a.rule_ == *b.rule_);
  }

 private:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;
  static std::size_t hash_of(const MemberRule& rule);
  static Order order_of(const MemberRule& rule);

  std::size_t hash_;
  Order order_;  // places of properties by key, where there are many; else null
  std::shared_ptr<const MemberRule> rule_;
};

struct ObjectCell {
  std::vector<SharedRule> rules = {};  // each holds for every member
  std::vector<std::string> required = {};
  std::vector<std::string> absent = {};
  TermId names = kNothing;  // keys that may be; kNothing: any
  bool has_names = false;
  std::uint32_t min_members = 0;
  std::uint32_t max_members = kNoLimit;
  std::vector<Occurrence> contains = {};  // some member with such a key has such a value

  friend bool operator==(const ObjectCell&, const ObjectCell&) = default;
};

// A union. Each type has its own cells; no cell of a type: no value of it.
struct Cells {
  bool has_null = false;
  bool has_true = false;
  bool has_false = false;
  bool is_narrowed = false;  // values are missing that no cell can name
  std::vector<NumberSet> numbers = {};
  std::vector<StringCell> strings = {};
  std::vector<ArrayCell> arrays = {};
  std::vector<ObjectCell> objects = {};

  bool is_empty() const {
    return !has_null && !has_true && !has_false && numbers.empty() && strings.empty() && arrays.empty() &&
           objects.empty();
  }
  std::size_t count() const { return numbers.size() + strings.size() + arrays.size() + objects.size(); }

  friend bool operator==(const Cells&, const Cells&) = default;
};

}  // namespace kvasir::grammar
