// The values a chat template computes with: Python's, as far as templates can tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::jinja {

class Dict;
class Object;
struct List;
struct Text;

// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

enum class ListKind : std::uint8_t { kList, kTuple, kGroup, kRange, kDictKeys, kDictValues, kDictItems };

// A cheap handle: scalars are held inside, everything else is shared and immutable except an Object.
//
// Thread safety: as a shared_ptr; values without objects (from_json, the builders below) may be read
// by any number of renders at once.
// Invariants: strings are well-formed UTF-8. Containers nest at most kMaxValueDepth levels when they
// come from from_json or a render.
class Value {
 public:
  // The order is that of the variant below.
  enum class Kind : std::uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kBigInt,
    kFloat,
    kString,
    kList,
    kDict,
    kObject
  };
  using Entry = std::pair<Value, Value>;

  // Undefined without a reason.
  Value() = default;
  // `reason` is what an operation on the value complains with, e.g. "'tools' is undefined".
  static Value undefined(std::string reason);
  // The undefined that stands for an argument the caller left out.
  static Value missing();
  static Value none();
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  // An integer beyond int64, kept as its decimal digits: it prints and compares for equality only.
  static Value big_integer(std::string digits);
  static Value number(double value);
  static Value string(std::string utf8);
  // A string that `+` escapes its other operand for (what the `safe` filter returns).
  static Value markup(std::string utf8);
  // A string of which is known what came from outside of the template (TracedText builds it).
  static Value traced(std::string utf8, std::vector<TextSpan> foreign, bool is_markup = false);
  static Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  // Keys must be hashable(); the last of equal keys wins, at the place of the first.
  static Value dict(std::vector<Entry> entries);
  static Value object(std::shared_ptr<Object> object);
  // Keeps key order and tells integers from floats. Errors (kUsage): malformed JSON, invalid UTF-8,
  // nesting above kMaxValueDepth,
  // integers beyond 64 bits.
  static Result<Value> from_json(std::string_view json);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_undefined() const { return kind() == Kind::kUndefined; }
  bool is_missing() const;
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_list() const { return kind() == Kind::kList; }
  bool is_dict() const { return kind() == Kind::kDict; }
  bool is_object() const { return kind() == Kind::kObject; }
  // Whether the value may be a dict key: everything but lists, dicts and objects.
  bool hashable() const;

  // Each requires the kind of its name.
  bool as_bool() const { return std::get<bool>(data_); }
  std::int64_t as_int() const { return std::get<std::int64_t>(data_); }
  double as_float() const { return std::get<double>(data_); }
  const std::string& as_string() const;
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::string& digits() const;
  const List& as_list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const std::shared_ptr<const List>& shared_list() const {
    return std::get<std::shared_ptr<const List>>(data_);
  }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& as_object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  // Why an undefined value is undefined. Requires: is_undefined().
  std::string undefined_reason() const;

  // Bool and int as an integer (true is 1); empty for every other kind.
  std::optional<std::int64_t> integral() const;
  // Bool, int and float as a double; empty for every other kind.
  std::optional<double> numeric() const;
  // The name of the Python type, e.g. "str".
  std::string_view type_name() const;
  // 0 for scalars, 1 + the deepest item for containers.
  std::size_t depth() const;
  // Whether both are the same object in memory, or equal scalars of one kind (Python's `is`).
  bool same_as(const Value& other) const;

 private:
  struct Undefined {
    std::shared_ptr<const std::string> reason;
    bool missing;
  };
  struct None {};
  struct BigInt {
    std::shared_ptr<const std::string> digits;
  };
  using Data =
      std::variant<Undefined, None, bool, std::int64_t, BigInt, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Object>>;

  template <class T>
  static Value holding(T data) {
    return Value(Data(std::move(data)));
  }
  explicit Value(Data data) : data_(std::move(data)) {}

  Data data_ = Undefined{.reason = nullptr, .missing = false};
};

inline constexpr std::size_t kMaxValueDepth = 128;

struct Text {
  std::string bytes;
  std::size_t num_code_points = 0;
  bool is_markup = false;
  // Whether `foreign` is known; a builtin that does not say makes a text that is wholly as its arguments are.
  bool is_traced = false;
  std::vector<TextSpan> foreign = {};  // what the template did not write, ascending

  bool is_ascii() const { return num_code_points == bytes.size(); }
};

struct List {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
  std::size_t depth = 1;
};

// An insertion-ordered map with scalar keys, fixed once built. 1, 1.0 and true are one key, as in Python.
class Dict {
 public:
  explicit Dict(std::vector<Value::Entry> entries);

  const std::vector<Value::Entry>& entries() const { return entries_; }
  // Null when absent or when the key is not hashable.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  std::size_t depth() const { return depth_; }

 private:
  std::vector<Value::Entry> entries_;
  std::vector<std::uint32_t> order_;  // indices of entries_, sorted by key
  std::size_t depth_ = 1;
};

}  // namespace kvasir::jinja
