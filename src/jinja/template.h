// A parsed template, ready to render.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "jinja/render_options.h"
#include "jinja/traced_text.h"
#include "jinja/value.h"
#include "kvasir/result.h"

namespace kvasir::jinja {

// The Jinja subset that published chat templates use, with the semantics of Jinja2 as transformers sets it up
// (immutable sandbox, trim_blocks, lstrip_blocks, loop controls, its own tojson, raise_exception,
// strftime_now and {% generation %}). No includes, imports or template inheritance.
//
// Thread safety: immutable; render() may run on any number of threads at once.
class Template {
 public:
  // Errors (kBadFile): source above kMaxSourceBytes, invalid UTF-8, a syntax error; the message has the line.
  static Result<Template> parse(std::string_view source);

  // `globals` is a dict of what the template sees. Errors name the template's line: kUsage for what the
  // template refuses (raise_exception) or cannot compute, kUnmet for a limit.
  Result<std::string> render(const Value& globals, const RenderOptions& options = {}) const;
  // The same, and which bytes of it came from strings in `globals` that as_foreign() has made so. A builtin that
  // has no rule of its own gives text that is wholly foreign if any of its arguments has foreign text.
  Result<TracedText> render_traced(const Value& globals, const RenderOptions& options = {}) const;

  // As it was given to parse().
  std::string_view source() const;

  static constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;

 private:
  struct Parsed;
  explicit Template(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace kvasir::jinja
