// The `loop` variable of a for loop.
#pragma once

#include <memory>
#include <vector>

#include "jinja/interpreter.h"
#include "jinja/object.h"
#include "jinja/scope.h"

namespace kvasir::jinja {

class Loop final : public Object {
 public:
  // `depth` counts recursive calls from 0.
  Loop(Interpreter& interpreter, const For& node, std::shared_ptr<Scope> closure, std::vector<Value> items,
       std::size_t depth)
      : interpreter_(interpreter),
        node_(node),
        closure_(std::move(closure)),
        items_(std::move(items)),
        depth_(depth) {}

  // Moves to the next item; null at the end.
  const Value* advance() { return next_ < items_.size() ? &items_[next_++] : nullptr; }

  std::string_view type_name() const override { return "LoopContext"; }
  std::string repr() const override;
  std::optional<Value> attribute(std::string_view name) override;
  bool callable() const override { return true; }
  // loop(items) renders a recursive loop's body over other items.
  Result<Value> call(Runtime& runtime, Arguments arguments) override;
  std::optional<std::size_t> length() const override { return items_.size(); }
  void release() override;

  Value cycle(const std::vector<Value>& values) const { return values[(next_ - 1) % values.size()]; }
  // Whether the values differ from those of the call before.
  Result<bool> changed(Runtime& runtime, Value values);

 private:
  Interpreter& interpreter_;
  const For& node_;
  std::shared_ptr<Scope> closure_;
  std::vector<Value> items_;
  std::size_t depth_;
  std::size_t next_ = 0;  // index0 + 1
  std::optional<Value> last_changed_;
};

}  // namespace kvasir::jinja
