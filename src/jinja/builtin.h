// Filters, tests, methods and global functions: named C++ functions with Python's calling convention.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "jinja/object.h"
#include "jinja/runtime.h"

namespace kvasir::jinja {

inline constexpr std::size_t kMaxParameters = 5;
// In `parameters`: takes any arguments as they come.
inline constexpr std::string_view kAnyArguments = "*";

// `function` gets arguments bound to `parameters`: positional[i] is the i-th parameter's value, missing()
// when it was left out. With kAnyArguments it gets them untouched.
struct Builtin {
  std::string_view name;
  std::uint8_t num_required = 0;
  std::array<std::string_view, kMaxParameters> parameters = {};
  Result<Value> (*function)(Runtime& runtime, const Value& self, const Arguments& arguments) = nullptr;
};

// Binds the arguments and calls. Errors (kUsage): too many, too few or unknown arguments.
Result<Value> invoke(const Builtin& builtin, Runtime& runtime, const Value& self, Arguments arguments);

// Null when no entry has that name.
const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name);

// Null for names Jinja does not have.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
// The methods Python has on values of this type (not on objects).
const Builtin* find_method(const Value& self, std::string_view name);
// Whether the sandbox refuses that method because it would change the value.
bool is_mutating_method(const Value& self, std::string_view name);

// A builtin as a value: a bound method or a global function.
class BuiltinFunction final : public Object {
 public:
  BuiltinFunction(const Builtin& builtin, Value self) : builtin_(builtin), self_(std::move(self)) {}

  std::string_view type_name() const override { return "builtin_function_or_method"; }
  std::string repr() const override;
  bool callable() const override { return true; }
  Result<Value> call(Runtime& runtime, Arguments arguments) override;
  std::size_t depth() const override { return self_.depth() + 1; }

 private:
  const Builtin& builtin_;
  Value self_;
};

// Reading bound arguments; each error names the parameter and the type it got.
Result<std::int64_t> int_argument(const Value& argument, std::string_view name, std::int64_t if_missing);
Result<std::string> string_argument(const Value& argument, std::string_view name,
                                    std::string_view if_missing);
bool flag_argument(const Value& argument, bool if_missing);

}  // namespace kvasir::jinja
