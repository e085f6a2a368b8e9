#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/access.h"
#include "jinja/depth_guard.h"
#include "jinja/loop.h"
#include "jinja/macro.h"
#include "jinja/namespace.h"
#include "jinja/text_form.h"

namespace kvasir::jinja {

class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, std::shared_ptr<Scope> parent)
      : interpreter_(interpreter), outer_(std::move(interpreter.scope_)) {
    interpreter_.scope_ = std::make_shared<Scope>(Scope{.parent = std::move(parent), .variables = {}});
  }
  explicit ScopeGuard(Interpreter& interpreter) : ScopeGuard(interpreter, interpreter.scope_) {}
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { interpreter_.scope_ = std::move(outer_); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

Interpreter::Interpreter(const Value& globals, const RenderOptions& options)
    : runtime_(options), scope_(std::make_shared<Scope>()), evaluator_(globals, runtime_, scope_, line_) {}

Result<TracedText> Interpreter::render(const Block& body) {
  TracedText text;
  output_ = &text;
  KVASIR_CHECKED(run_block(body));
  return text;
}

Status Interpreter::charge_output(std::size_t size_bytes) {
  KVASIR_CHECKED(runtime_.charge(size_bytes / 64));
  const std::size_t limit = runtime_.options().max_output_bytes;
  if (size_bytes > limit - std::min(limit, captured_bytes_ + output_->size())) {
    return limit_error("the output exceeds its limit of {} bytes", limit);
  }
  return {};
}

Status Interpreter::write(const Value& value) {
  KVASIR_TRY(const Value text, to_text_value(runtime_, value));
  KVASIR_CHECKED(charge_output(text.as_string().size()));
  output_->append(text.text());
  return {};
}

Result<Interpreter::Flow> Interpreter::run_block(const Block& block) {
  for (const Stmt& statement : block) {
    line_ = statement.line;
    KVASIR_CHECKED(runtime_.charge(1));
    KVASIR_TRY(const Flow flow, std::visit([this](const auto& node) { return run(node); }, statement.node));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::capture(const Block& block, TracedText& text) {
  TracedText* const outer = std::exchange(output_, &text);
  captured_bytes_ += outer->size();
  Result<Flow> flow = Flow::kNext;
  {
    const ScopeGuard scope(*this);
    flow = run_block(block);
  }
  captured_bytes_ -= outer->size();
  output_ = outer;
  return flow;
}

Result<Interpreter::Flow> Interpreter::run(const TextOutput& node) {
  KVASIR_CHECKED(charge_output(node.text.size()));
  output_->append(node.text);
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const ValueOutput& node) {
  KVASIR_TRY(const Value value, evaluator_.evaluate(*node.value));
  KVASIR_CHECKED(write(value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    KVASIR_TRY(const bool holds, evaluator_.evaluate_condition(*condition));
    if (holds) return run_block(body);
  }
  return run_block(node.otherwise);
}

Result<Interpreter::Flow> Interpreter::run(const For& node) {
  KVASIR_TRY(const Value iterable, evaluator_.evaluate(*node.iterable));
  return run_loop(node, scope_, iterable, 0);
}

// The items the loop's own `if` lets through.
Result<std::vector<Value>> Interpreter::loop_items(const For& node, const Value& iterable) {
  KVASIR_TRY(const auto all, iterate(runtime_, iterable));
  KVASIR_CHECKED(runtime_.charge(all->items.size()));
  if (node.filter == nullptr) return all->items;
  std::vector<Value> kept;
  for (const Value& item : all->items) {
    const ScopeGuard scope(*this);
    KVASIR_CHECKED(assign(node.target, item));
    KVASIR_TRY(const bool keep, evaluator_.evaluate_condition(*node.filter));
    if (keep) kept.push_back(item);
  }
  return kept;
}

Result<Interpreter::Flow> Interpreter::run_loop(const For& node, const std::shared_ptr<Scope>& closure,
                                                const Value& iterable, std::size_t depth) {
  const int line = line_;
  KVASIR_TRY(std::vector<Value> items, loop_items(node, iterable));
  const auto loop = std::make_shared<Loop>(*this, node, closure, std::move(items), depth);
  KVASIR_TRY(const Value loop_value, runtime_.adopt(loop));
  bool completed_an_item = false;
  while (const Value* item = loop->advance()) {
    line_ = line;
    KVASIR_CHECKED(runtime_.charge(1));
    const ScopeGuard scope(*this, closure);
    scope_->variables.emplace("loop", loop_value);
    KVASIR_CHECKED(assign(node.target, *item));
    KVASIR_TRY(const Flow flow, run_block(node.body));
    if (flow == Flow::kBreak) break;
    completed_an_item |= flow == Flow::kNext;
  }
  // Jinja's `else` also runs when every item ended in break or continue.
  if (completed_an_item) return Flow::kNext;
  const ScopeGuard scope(*this, closure);
  return run_block(node.otherwise);
}

Result<Value> Interpreter::call_loop(const For& node, const std::shared_ptr<Scope>& closure,
                                     const Value& iterable, std::size_t depth) {
  const DepthGuard guard(call_depth_);
  if (call_depth_ > runtime_.options().max_depth) {
    return limit_error("recursive loops nest deeper than the limit of {}", runtime_.options().max_depth);
  }
  TracedText text;
  TracedText* const outer = std::exchange(output_, &text);
  captured_bytes_ += outer->size();
  const Result<Flow> flow = run_loop(node, closure, iterable, depth);
  captured_bytes_ -= outer->size();
  output_ = outer;
  KVASIR_CHECKED(flow);
  return runtime_.make_string(std::move(text));
}

Result<Interpreter::Flow> Interpreter::run(const Set& node) {
  KVASIR_TRY(const Value value, evaluator_.evaluate(*node.value));
  KVASIR_CHECKED(assign(node.target, value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const SetBlock& node) {
  TracedText text;
  KVASIR_TRY(const Flow flow, capture(node.body, text));
  if (flow != Flow::kNext) return flow;
  KVASIR_TRY(Value value, runtime_.make_string(std::move(text)));
  KVASIR_TRY(value, evaluator_.apply_filters(node.filters, std::move(value)));
  KVASIR_CHECKED(assign(node.target, value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const MacroStmt& node) {
  KVASIR_TRY(Value macro, runtime_.adopt(std::make_shared<Macro>(*this, node.macro, scope_)));
  scope_->variables.insert_or_assign(node.macro.name, std::move(macro));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const CallBlock& node) {
  KVASIR_TRY(Value caller, runtime_.adopt(std::make_shared<Macro>(*this, node.caller, scope_)));
  KVASIR_TRY(const Value value,
             evaluator_.evaluate_with_caller(std::get<Postfix>(node.call->node), std::move(caller)));
  KVASIR_CHECKED(write(value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const FilterBlock& node) {
  TracedText text;
  KVASIR_TRY(const Flow flow, capture(node.body, text));
  if (flow != Flow::kNext) return flow;
  KVASIR_TRY(Value value, runtime_.make_string(std::move(text)));
  KVASIR_TRY(value, evaluator_.apply_filters(node.filters, std::move(value)));
  KVASIR_CHECKED(write(value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const With& node) {
  // Every value is computed outside before the first name is bound.
  std::vector<Value> values;
  for (const auto& binding : node.bindings) {
    KVASIR_TRY(Value value, evaluator_.evaluate(*binding.second));
    values.push_back(std::move(value));
  }
  const ScopeGuard scope(*this);
  for (std::size_t i = 0; i < values.size(); ++i) KVASIR_CHECKED(assign(node.bindings[i].first, values[i]));
  return run_block(node.body);
}

Result<Interpreter::Flow> Interpreter::run(const Generation& node) {
  const ScopeGuard scope(*this);
  return run_block(node.body);
}

Result<Interpreter::Flow> Interpreter::run(const Break& /*node*/) { return Flow::kBreak; }
Result<Interpreter::Flow> Interpreter::run(const Continue& /*node*/) { return Flow::kContinue; }

Status Interpreter::assign(const Target& target, const Value& value) {
  KVASIR_CHECKED(runtime_.charge(1));
  if (!target.attribute.empty()) {
    const Value holder = evaluator_.look_up(target.name);
    auto* space = holder.is_object() ? dynamic_cast<Namespace*>(&holder.as_object()) : nullptr;
    if (space == nullptr)
      return template_error("'{}' is no namespace, its attributes cannot be set", target.name);
    return space->set(target.attribute, value);
  }
  if (target.parts.empty()) {
    scope_->variables.insert_or_assign(target.name, value);
    return {};
  }
  if (value.is_undefined()) return template_error("{}", value.undefined_reason());
  KVASIR_TRY(const auto items, iterate(runtime_, value));
  if (items->items.size() != target.parts.size()) {
    return template_error("cannot unpack {} values into {} names", items->items.size(), target.parts.size());
  }
  for (std::size_t i = 0; i < target.parts.size(); ++i)
    KVASIR_CHECKED(assign(target.parts[i], items->items[i]));
  return {};
}

Result<Value> Interpreter::call_macro(const MacroDefinition& macro, const std::shared_ptr<Scope>& closure,
                                      Arguments arguments) {
  const DepthGuard guard(call_depth_);
  if (call_depth_ > runtime_.options().max_depth) {
    return limit_error("macro calls nest deeper than the limit of {}", runtime_.options().max_depth);
  }
  const int line = line_;
  TracedText text;
  const ScopeGuard scope(*this, closure);
  KVASIR_CHECKED(bind_parameters(macro, arguments));
  TracedText* const outer = std::exchange(output_, &text);
  captured_bytes_ += outer->size();
  const Result<Flow> flow = run_block(macro.body);
  captured_bytes_ -= outer->size();
  output_ = outer;
  KVASIR_CHECKED(flow);
  line_ = line;
  return runtime_.make_string(std::move(text));
}

// Positional, then by name, then defaults; what is left becomes varargs, kwargs and caller where the body
// reads them.
Status Interpreter::bind_parameters(const MacroDefinition& macro, Arguments& arguments) {
  const std::size_t count = macro.parameters.size();
  const std::size_t num_positional = std::min(arguments.positional.size(), count);
  const std::size_t first_default = count - macro.defaults.size();
  bool has_caller_parameter = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = macro.parameters[i];
    has_caller_parameter |= name == "caller";
    Value value = i < num_positional ? arguments.positional[i] : arguments.take_keyword(name);
    if (value.is_missing() && i >= first_default) {
      KVASIR_TRY(value, evaluator_.evaluate(*macro.defaults[i - first_default]));
    } else if (value.is_missing()) {
      value = Value::undefined(fmt::format("parameter '{}' was not provided", name));
    }
    scope_->variables.insert_or_assign(name, std::move(value));
  }
  if (macro.uses_caller && !has_caller_parameter) {
    Value caller = arguments.take_keyword("caller");
    if (caller.is_missing()) caller = Value::undefined("No caller defined");
    scope_->variables.insert_or_assign("caller", std::move(caller));
  }
  if (macro.uses_kwargs) {
    std::vector<Value::Entry> rest;
    for (auto& [name, value] : arguments.keywords) rest.emplace_back(Value::string(name), std::move(value));
    KVASIR_TRY(Value kwargs, runtime_.make_dict(std::move(rest)));
    scope_->variables.insert_or_assign("kwargs", std::move(kwargs));
  } else if (!arguments.keywords.empty()) {
    return template_error("macro '{}' takes no keyword argument '{}'", macro.name,
                          arguments.keywords[0].first);
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(num_positional),
                            arguments.positional.end());
    KVASIR_TRY(Value varargs, runtime_.make_list(std::move(rest), ListKind::kTuple));
    scope_->variables.insert_or_assign("varargs", std::move(varargs));
  } else if (arguments.positional.size() > count) {
    return template_error("macro '{}' takes not more than {} arguments", macro.name, count);
  }
  return {};
}

}  // namespace kvasir::jinja
