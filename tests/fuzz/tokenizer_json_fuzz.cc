// Any bytes as a tokenizer.json: an error of one line, or a tokenizer whose ids are inside its vocabulary.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/hf/tokenizer_json.h"

namespace {

constexpr std::string_view
    kText = "Hello  w\u00f6rld's 123!\n\n<s>\u0301 \U0001F468\u200D\U0001F4BB\r\n\u2581ab \xFF caf\u00e9";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = kvasir::text::load_tokenizer_json(
      {.tokenizer_json = input, .tokenizer_config = "{}"});
  if (!tokenizer) {
    CHECK(!tokenizer.error().message.empty() && tokenizer.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const bool parse_special : {false, true}) {
    const auto ids = (*tokenizer)->encode(kText, {.parse_special = parse_special});
    for (const kvasir::TokenId id : ids) CHECK((*tokenizer)->vocab().contains(id));
    kvasir::text::StreamingDetokenizer detokenizer(**tokenizer);
    for (const kvasir::TokenId id : ids) CHECK(kvasir::is_valid_utf8(detokenizer.push(id)));
    CHECK(kvasir::is_valid_utf8(detokenizer.flush()));
  }
  (void)(*tokenizer)->encode_pair("a", "b");
  return 0;
}
