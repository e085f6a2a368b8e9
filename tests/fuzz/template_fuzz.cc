// Any bytes as a chat template: parsing and rendering must end within their limits, in text or an Error.
// A zero byte ends the template; what follows is read as the JSON of its globals.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "jinja/template.h"

namespace {

using kvasir::jinja::Value;

constexpr std::string_view kGlobals = R"({
  "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Gr\u00fc\u00dfe <b> & \ud83c\udf0d"},
    {"role": "assistant", "content": null,
     "tool_calls": [{"id": "abcdef123", "type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5]}}}]},
    {"role": "tool", "content": "42", "tool_call_id": "abcdef123"},
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "parts"}]}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "does", "parameters": {"type": "object",
     "properties": {"x": {"type": "array", "items": {"type": ["integer", "null"]}}}, "required": ["x"]}}}],
  "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>",
  "n": 7, "pi": 3.14159, "big": 18446744073709551615, "name": "Ada", "nums": [3, 1, 2], "text": " a b\n c "})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const auto parsed = kvasir::jinja::Template::parse(input.substr(0, end));
  if (!parsed) return 0;
  const auto globals = Value::from_json(end < input.size() ? input.substr(end + 1) : kGlobals);
  if (!globals) return 0;
  const kvasir::jinja::RenderOptions options{
      .max_steps = 20'000, .max_output_bytes = 1 << 16, .max_depth = 16, .now = [] { return std::tm{}; }};
  const auto text = parsed->render(*globals, options);
  if (!text) return 0;
  CHECK(text->size() <= options.max_output_bytes);
  CHECK(kvasir::is_valid_utf8(*text));
  const auto traced = parsed->render_traced(kvasir::jinja::as_foreign(*globals), options);
  if (!traced) return 0;  // following the text takes steps too
  CHECK(traced->bytes() == *text);
  std::size_t position = 0;
  for (const auto& [begin_byte, end_byte] : traced->foreign()) {
    CHECK(begin_byte >= position && begin_byte < end_byte && end_byte <= text->size());
    position = end_byte;
  }
  return 0;
}
