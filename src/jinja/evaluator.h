// Computes the expressions of a template.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "jinja/ast.h"
#include "jinja/runtime.h"
#include "jinja/scope.h"

namespace kvasir::jinja {

// Reads variables in the render's innermost scope and writes none.
//
// Thread safety: none; one Interpreter owns it.
class Evaluator {
 public:
  // Everything given belongs to one render and must outlive this. `scope` is the innermost one whenever an
  // expression is evaluated. `line` becomes the line of the node that is being evaluated.
  Evaluator(const Value& globals, Runtime& runtime, const std::shared_ptr<Scope>& scope, int& line)
      : globals_(globals.is_dict() ? &globals.as_dict() : nullptr),
        runtime_(runtime),
        scope_(scope),
        line_(line) {}

  Result<Value> evaluate(const Expr& expr);
  Result<bool> evaluate_condition(const Expr& expr);
  // `caller` is passed to the last call of the chain.
  Result<Value> evaluate_with_caller(const Postfix& node, Value caller) {
    return eval_postfix(node, std::move(caller));
  }
  Result<Value> apply_filters(const std::vector<FilterCall>& filters, Value value);
  // Undefined when neither a scope, the globals nor Jinja has the name.
  Value look_up(std::string_view name) const;

 private:
  Result<Value> evaluate_or_none(const ExprPtr& expr);
  Result<Value> eval(const Literal& node);
  Result<Value> eval(const NameRef& node);
  Result<Value> eval(const ListDisplay& node);
  Result<Value> eval(const DictDisplay& node);
  Result<Value> eval(const Conditional& node);
  Result<Value> eval(const Junction& node);
  Result<Value> eval(const Negation& node);
  Result<Value> eval(const SignedExpr& node);
  Result<Value> eval(const ArithmeticChain& node);
  Result<Value> eval(const Concatenation& node);
  Result<Value> eval(const ComparisonChain& node);
  Result<Value> eval(const Postfix& node);
  // `caller` is passed to the last call of the chain; empty for none.
  Result<Value> eval_postfix(const Postfix& node, std::optional<Value> caller);
  Result<Value> apply(const AttributeAccess& suffix, const Value& value);
  Result<Value> apply(const Subscript& suffix, const Value& value);
  Result<Value> apply(const SliceAccess& suffix, const Value& value);
  Result<Value> apply(const Call& suffix, const Value& value);
  Result<Value> apply(const FilterCall& suffix, const Value& value);
  Result<Value> apply(const TestCall& suffix, const Value& value);
  Result<Value> call(const Value& callee, Arguments arguments);
  Result<Arguments> evaluate_arguments(const CallArguments& node);

  const Dict* globals_;  // null when the globals are no dict
  Runtime& runtime_;
  const std::shared_ptr<Scope>& scope_;
  int& line_;
  std::size_t node_depth_ = 0;
};

}  // namespace kvasir::jinja
