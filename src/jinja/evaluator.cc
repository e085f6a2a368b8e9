#include "jinja/evaluator.h"

#include "jinja/access.h"
#include "jinja/builtin.h"
#include "jinja/comparison.h"
#include "jinja/depth_guard.h"
#include "jinja/operators.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

// The tree's depth is limited by the parser, but macros stack trees: this bounds the native stack.
constexpr std::size_t kNodesPerCall = 16;

}  // namespace

Result<Value> Evaluator::evaluate(const Expr& expr) {
  const DepthGuard guard(node_depth_);
  const std::size_t limit = kNodesPerCall * runtime_.options().max_depth;
  if (node_depth_ > limit) return limit_error("expressions nest deeper than the limit of {}", limit);
  KVASIR_CHECKED(runtime_.charge(1));
  line_ = expr.line;
  return std::visit([this](const auto& node) { return eval(node); }, expr.node);
}

Result<bool> Evaluator::evaluate_condition(const Expr& expr) {
  KVASIR_TRY(const Value value, evaluate(expr));
  return truthy(value);
}

Result<Value> Evaluator::evaluate_or_none(const ExprPtr& expr) {
  if (expr == nullptr) return Value::none();
  return evaluate(*expr);
}

Value Evaluator::look_up(std::string_view name) const {
  if (const Value* value = scope_->find(name)) return *value;
  if (globals_ != nullptr) {
    if (const Value* value = globals_->find(name)) return *value;
  }
  if (const Builtin* function = find_global(name)) {
    return Value::object(std::make_shared<BuiltinFunction>(*function, Value()));
  }
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Result<Value> Evaluator::eval(const Literal& node) { return node.value; }
Result<Value> Evaluator::eval(const NameRef& node) { return look_up(node.name); }

Result<Value> Evaluator::eval(const ListDisplay& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExprPtr& expr : node.items) {
    KVASIR_TRY(Value item, evaluate(*expr));
    items.push_back(std::move(item));
  }
  return runtime_.make_list(std::move(items), node.kind);
}

Result<Value> Evaluator::eval(const DictDisplay& node) {
  std::vector<Value::Entry> entries;
  entries.reserve(node.entries.size());
  for (const auto& [key_expr, value_expr] : node.entries) {
    KVASIR_TRY(Value key, evaluate(*key_expr));
    KVASIR_TRY(Value value, evaluate(*value_expr));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return runtime_.make_dict(std::move(entries));
}

Result<Value> Evaluator::eval(const Conditional& node) {
  KVASIR_TRY(const bool holds, evaluate_condition(*node.condition));
  if (holds) return evaluate(*node.value);
  if (node.otherwise != nullptr) return evaluate(*node.otherwise);
  return Value::undefined("the inline if-expression has no else section and its condition is false");
}

Result<Value> Evaluator::eval(const Junction& node) {
  Value value;
  for (const ExprPtr& operand : node.operands) {
    KVASIR_TRY(value, evaluate(*operand));
    if (truthy(value) != node.is_and) break;
  }
  return value;
}

Result<Value> Evaluator::eval(const Negation& node) {
  KVASIR_TRY(const bool holds, evaluate_condition(*node.operand));
  return Value::boolean(!holds);
}

Result<Value> Evaluator::eval(const SignedExpr& node) {
  KVASIR_TRY(const Value operand, evaluate(*node.operand));
  return node.is_minus ? negate(operand) : posit(operand);
}

Result<Value> Evaluator::eval(const ArithmeticChain& node) {
  KVASIR_TRY(Value value, evaluate(*node.first));
  for (const auto& [op, operand_expr] : node.rest) {
    KVASIR_TRY(const Value operand, evaluate(*operand_expr));
    KVASIR_TRY(value, apply_binary(runtime_, op, value, operand));
  }
  return value;
}

Result<Value> Evaluator::eval(const Concatenation& node) {
  TracedText text;
  for (const ExprPtr& operand : node.operands) {
    KVASIR_TRY(const Value value, evaluate(*operand));
    KVASIR_CHECKED(append_text(runtime_, value, text));
  }
  return runtime_.make_string(std::move(text));
}

Result<Value> Evaluator::eval(const ComparisonChain& node) {
  KVASIR_TRY(Value left, evaluate(*node.first));
  for (const auto& [op, operand_expr] : node.rest) {
    KVASIR_TRY(Value right, evaluate(*operand_expr));
    KVASIR_TRY(const bool holds, apply_compare(runtime_, op, left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Evaluator::eval(const Postfix& node) { return eval_postfix(node, std::nullopt); }

Result<Value> Evaluator::eval_postfix(const Postfix& node, std::optional<Value> caller) {
  KVASIR_TRY(Value value, evaluate(*node.base));
  for (const Suffix& suffix : node.suffixes) {
    KVASIR_CHECKED(runtime_.charge(1));
    line_ = suffix.line;
    if (caller && &suffix == &node.suffixes.back()) {
      KVASIR_TRY(Arguments arguments, evaluate_arguments(std::get<Call>(suffix.node).arguments));
      arguments.keywords.emplace_back("caller", std::move(*caller));
      return call(value, std::move(arguments));
    }
    KVASIR_TRY(value, std::visit([&](const auto& part) { return apply(part, value); }, suffix.node));
  }
  return value;
}

Result<Value> Evaluator::apply(const AttributeAccess& suffix, const Value& value) {
  return get_attribute(runtime_, value, suffix.name);
}

Result<Value> Evaluator::apply(const Subscript& suffix, const Value& value) {
  KVASIR_TRY(const Value key, evaluate(*suffix.key));
  return get_item(runtime_, value, key);
}

Result<Value> Evaluator::apply(const SliceAccess& suffix, const Value& value) {
  KVASIR_TRY(const Value start, evaluate_or_none(suffix.start));
  KVASIR_TRY(const Value stop, evaluate_or_none(suffix.stop));
  KVASIR_TRY(const Value step, evaluate_or_none(suffix.step));
  return get_slice(runtime_, value, start, stop, step);
}

Result<Value> Evaluator::apply(const Call& suffix, const Value& value) {
  const int line = line_;
  KVASIR_TRY(Arguments arguments, evaluate_arguments(suffix.arguments));
  line_ = line;
  return call(value, std::move(arguments));
}

Result<Value> Evaluator::apply(const FilterCall& suffix, const Value& value) {
  if (suffix.filter == nullptr) return template_error("No filter named '{}'.", suffix.name);
  const int line = line_;
  KVASIR_TRY(Arguments arguments, evaluate_arguments(suffix.arguments));
  line_ = line;
  return invoke(*suffix.filter, runtime_, value, std::move(arguments));
}

Result<Value> Evaluator::apply(const TestCall& suffix, const Value& value) {
  if (suffix.test == nullptr) return template_error("No test named '{}'.", suffix.name);
  const int line = line_;
  KVASIR_TRY(Arguments arguments, evaluate_arguments(suffix.arguments));
  line_ = line;
  KVASIR_TRY(const Value result, invoke(*suffix.test, runtime_, value, std::move(arguments)));
  return Value::boolean(truthy(result) != suffix.negated);
}

Result<Value> Evaluator::call(const Value& callee, Arguments arguments) {
  KVASIR_CHECKED(runtime_.charge(1 + arguments.positional.size() + arguments.keywords.size()));
  if (callee.is_undefined()) return template_error("{}", callee.undefined_reason());
  if (!callee.is_object()) return template_error("'{}' object is not callable", callee.type_name());
  return callee.as_object().call(runtime_, std::move(arguments));
}

Result<Value> Evaluator::apply_filters(const std::vector<FilterCall>& filters, Value value) {
  for (const FilterCall& filter : filters) {
    KVASIR_TRY(value, apply(filter, value));
  }
  return value;
}

Result<Arguments> Evaluator::evaluate_arguments(const CallArguments& node) {
  Arguments arguments;
  for (const ExprPtr& expr : node.positional) {
    KVASIR_TRY(Value value, evaluate(*expr));
    arguments.positional.push_back(std::move(value));
  }
  if (node.unpacked_list != nullptr) {
    KVASIR_TRY(const Value list, evaluate(*node.unpacked_list));
    KVASIR_TRY(const auto items, iterate(runtime_, list));
    KVASIR_CHECKED(runtime_.charge(items->items.size()));
    arguments.positional.insert(arguments.positional.end(), items->items.begin(), items->items.end());
  }
  for (const auto& [name, expr] : node.keywords) {
    KVASIR_TRY(Value value, evaluate(*expr));
    arguments.keywords.emplace_back(name, std::move(value));
  }
  if (node.unpacked_dict != nullptr) {
    KVASIR_TRY(const Value dict, evaluate(*node.unpacked_dict));
    if (!dict.is_dict()) return template_error("** needs a mapping, not '{}'", dict.type_name());
    KVASIR_CHECKED(runtime_.charge(dict.as_dict().entries().size()));
    for (const auto& [key, value] : dict.as_dict().entries()) {
      if (!key.is_string()) return template_error("** needs string keys");
      arguments.keywords.emplace_back(key.as_string(), value);
    }
  }
  return arguments;
}

}  // namespace kvasir::jinja
