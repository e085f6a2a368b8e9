// Runs the statements of a template and writes its text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "jinja/ast.h"
#include "jinja/evaluator.h"
#include "jinja/runtime.h"
#include "jinja/scope.h"

namespace kvasir::jinja {

class Loop;

// One render. The template and the globals must outlive it.
//
// Thread safety: none; renders on several threads use an interpreter each.
class Interpreter {
 public:
  Interpreter(const Value& globals, const RenderOptions& options);

  Result<TracedText> render(const Block& body);
  // The template line being executed; after an error, the line it arose on.
  int line() const { return line_; }

  // A macro's or call block's body with its arguments bound, as text. `closure` is where it was defined.
  Result<Value> call_macro(const MacroDefinition& macro, const std::shared_ptr<Scope>& closure,
                           Arguments arguments);
  // The body of a recursive loop over other items, as text. `outer` is the loop that is called.
  Result<Value> call_loop(const For& node, const std::shared_ptr<Scope>& closure, const Value& iterable,
                          std::size_t depth);

 private:
  // How a statement ended.
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };

  // Makes a new innermost scope, and the old one again when it dies.
  class ScopeGuard;

  Result<Flow> run_block(const Block& block);
  Result<Flow> run(const TextOutput& node);
  Result<Flow> run(const ValueOutput& node);
  Result<Flow> run(const If& node);
  Result<Flow> run(const For& node);
  Result<Flow> run(const Set& node);
  Result<Flow> run(const SetBlock& node);
  Result<Flow> run(const MacroStmt& node);
  Result<Flow> run(const CallBlock& node);
  Result<Flow> run(const FilterBlock& node);
  Result<Flow> run(const With& node);
  Result<Flow> run(const Generation& node);
  Result<Flow> run(const Break& node);
  Result<Flow> run(const Continue& node);

  // Iterates over `iterable`, the loop's scopes inside `closure`; a recursive loop starts at `depth` > 0.
  Result<Flow> run_loop(const For& node, const std::shared_ptr<Scope>& closure, const Value& iterable,
                        std::size_t depth);
  Result<std::vector<Value>> loop_items(const For& node, const Value& iterable);
  Status charge_output(std::size_t size_bytes);
  Status write(const Value& value);
  // Runs a block in a scope of its own with its output kept apart.
  Result<Flow> capture(const Block& block, TracedText& text);
  Status assign(const Target& target, const Value& value);
  Status bind_parameters(const MacroDefinition& macro, Arguments& arguments);

  Runtime runtime_;
  std::shared_ptr<Scope> scope_;
  TracedText* output_ = nullptr;
  std::size_t captured_bytes_ = 0;  // of the outputs around the current one
  std::size_t call_depth_ = 0;
  int line_ = 1;
  Evaluator evaluator_;
};

}  // namespace kvasir::jinja
