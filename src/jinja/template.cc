#include "jinja/template.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace kvasir::jinja {

struct Template::Parsed {
  Block body;
  std::string source;
};

std::string_view Template::source() const { return parsed_->source; }

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("template: {} bytes, the limit is {}", source.size(), kMaxSourceBytes));
  }
  if (!is_valid_utf8(source)) return make_error(ErrorKind::kBadFile, "template: not valid UTF-8");
  auto body = parse_template(source);
  if (!body) return make_error(body.error().kind, "template, " + printable_line(body.error().message));
  return Template(std::make_shared<const Parsed>(Parsed{std::move(*body), std::string(source)}));
}

Result<std::string> Template::render(const Value& globals, const RenderOptions& options) const {
  KVASIR_TRY(const TracedText text, render_traced(globals, options));
  return text.bytes();
}

Result<TracedText> Template::render_traced(const Value& globals, const RenderOptions& options) const {
  Interpreter interpreter(globals, options);
  auto text = interpreter.render(parsed_->body);
  if (!text) {
    Error error = std::move(text).error();
    error.message = fmt::format("template, line {}: {}", interpreter.line(), printable_line(error.message));
    return std::unexpected(std::move(error));
  }
  return text;
}

}  // namespace kvasir::jinja
