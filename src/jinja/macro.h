// A macro, or the body of a call block, as a value.
#pragma once

#include <memory>
#include <string>

#include "jinja/ast.h"
#include "jinja/interpreter.h"
#include "jinja/object.h"
#include "jinja/scope.h"

namespace kvasir::jinja {

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, const MacroDefinition& definition, std::shared_ptr<Scope> closure)
      : interpreter_(interpreter), definition_(definition), closure_(std::move(closure)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string repr() const override { return "<Macro '" + definition_.name + "'>"; }
  std::optional<Value> attribute(std::string_view name) override;
  bool callable() const override { return true; }
  Result<Value> call(Runtime& runtime, Arguments arguments) override;
  void release() override { closure_.reset(); }

 private:
  Interpreter& interpreter_;
  const MacroDefinition& definition_;
  std::shared_ptr<Scope> closure_;
};

}  // namespace kvasir::jinja
