// A parsed template. Chains (a + b + c, x.a.b|f, a and b) are flat lists, so the depth of the tree is the
// depth of brackets and blocks, which the parser limits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/builtin.h"
#include "jinja/comparison.h"
#include "jinja/operators.h"
#include "jinja/value.h"

namespace kvasir::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// ---- expressions ----

struct Literal {
  Value value;
};
struct NameRef {
  std::string name;
};
struct ListDisplay {
  std::vector<ExprPtr> items;
  ListKind kind = ListKind::kList;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct Conditional {
  ExprPtr condition;
  ExprPtr value;
  ExprPtr otherwise;  // null: undefined
};
// Yields the first operand that decides, as Python does.
struct Junction {
  bool is_and = false;
  std::vector<ExprPtr> operands;
};
struct Negation {
  ExprPtr operand;
};
struct SignedExpr {
  bool is_minus = false;
  ExprPtr operand;
};
struct ArithmeticChain {
  ExprPtr first;
  std::vector<std::pair<BinaryOperator, ExprPtr>> rest;  // applied left to right
};
struct Concatenation {
  std::vector<ExprPtr> operands;
};
struct ComparisonChain {
  ExprPtr first;
  std::vector<std::pair<CompareOperator, ExprPtr>> rest;  // a < b < c compares b once
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr unpacked_list;  // *args, may be null
  ExprPtr unpacked_dict;  // **kwargs, may be null
};
struct AttributeAccess {
  std::string name;
};
struct Subscript {
  ExprPtr key;
};
struct SliceAccess {
  ExprPtr start, stop, step;  // null: left out
};
struct Call {
  CallArguments arguments;
};
struct FilterCall {
  std::string name;
  const Builtin* filter = nullptr;  // null: unknown, an error if it is ever reached
  CallArguments arguments;
};
struct TestCall {
  std::string name;
  const Builtin* test = nullptr;  // as above
  bool negated = false;
  CallArguments arguments;
};
struct Suffix {
  int line = 0;
  std::variant<AttributeAccess, Subscript, SliceAccess, Call, FilterCall, TestCall> node;
};
struct Postfix {
  ExprPtr base;
  std::vector<Suffix> suffixes;
};

struct Expr {
  int line = 0;
  std::variant<Literal, NameRef, ListDisplay, DictDisplay, Conditional, Junction, Negation, SignedExpr,
               ArithmeticChain, Concatenation, ComparisonChain, Postfix>
      node;
};

// ---- statements ----

struct Stmt;
using Block = std::vector<Stmt>;

// The names that an assignment, a loop or a signature binds.
struct Target {
  std::string name;           // of a variable or a namespace; empty for a tuple
  std::string attribute;      // of the namespace; empty for a variable
  std::vector<Target> parts;  // of a tuple
};

struct TextOutput {
  std::string text;
};
struct ValueOutput {
  ExprPtr value;
};
struct If {
  std::vector<std::pair<ExprPtr, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr filter;  // may be null
  bool recursive = false;
  Block body;
  Block otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  std::vector<FilterCall> filters;
  Block body;
};
// A macro's or a call block's parameters and body.
struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Block body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};
struct MacroStmt {
  MacroDefinition macro;
};
struct CallBlock {
  MacroDefinition caller;
  ExprPtr call;  // a Postfix that ends in a Call
};
struct FilterBlock {
  std::vector<FilterCall> filters;
  Block body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Block body;
};
// transformers' {% generation %}: a scope of its own, otherwise transparent.
struct Generation {
  Block body;
};
struct Break {};
struct Continue {};

struct Stmt {
  int line = 0;
  std::variant<TextOutput, ValueOutput, If, For, Set, SetBlock, MacroStmt, CallBlock, FilterBlock, With,
               Generation, Break, Continue>
      node;
};

}  // namespace kvasir::jinja
