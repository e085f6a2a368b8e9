// The state of one render: its budget, its clock and the objects it made.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "jinja/object.h"
#include "jinja/render_options.h"
#include "jinja/template_error.h"
#include "jinja/traced_text.h"
#include "jinja/value.h"

namespace kvasir::jinja {

// Everything that costs work or memory goes through here, so that no template can take more than its
// budget: whoever touches n items charges n steps, whoever touches n bytes charges n / 64.
//
// Thread safety: none; one render owns it.
class Runtime {
 public:
  explicit Runtime(const RenderOptions& options) : options_(options) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  const RenderOptions& options() const { return options_; }

  Status charge(std::size_t steps);
  Status charge_bytes(std::size_t bytes) { return charge(1 + bytes / 64); }

  // Charged values. Errors (kUnmet): out of steps, or nesting above kMaxValueDepth.
  Result<Value> make_string(std::string utf8);
  Result<Value> make_string(TracedText text);
  Result<Value> make_list(std::vector<Value> items, ListKind kind = ListKind::kList);
  Result<Value> make_dict(std::vector<Value::Entry> entries);
  Result<Value> make_iterator(std::string_view type_name, std::vector<Value> items);
  Result<Value> make_generator(std::vector<Value> items) {
    return make_iterator("generator", std::move(items));
  }

  // Takes an object whose contents may change after its making; its contents are released at the end.
  Result<Value> adopt(std::shared_ptr<Object> object);

 private:
  Result<Value> checked(Value container);

  const RenderOptions& options_;
  std::size_t steps_ = 0;
  std::vector<std::shared_ptr<Object>> objects_;
};

}  // namespace kvasir::jinja
