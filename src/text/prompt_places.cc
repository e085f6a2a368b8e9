#include "text/prompt_places.h"

#include <cstddef>

#include "jinja/traced_text.h"
#include "text/user_text.h"

namespace kvasir::text {

std::vector<TokenId> encode_with_places(std::string_view prompt, std::span<const PromptPlace> places,
                                        const Tokenizer& tokenizer) {
  jinja::TracedText filled;
  while (!prompt.empty()) {
    std::size_t begin = prompt.size();
    const PromptPlace* next = nullptr;
    for (const PromptPlace& place : places) {
      const std::size_t found = prompt.find(place.name);
      if (found >= begin) continue;
      begin = found;
      next = &place;
    }
    filled.append(prompt.substr(0, begin));
    if (next == nullptr) break;
    filled.append_foreign(next->text);
    prompt.remove_prefix(begin + next->name.size());
  }
  const std::vector<std::size_t> plain_at = plain_positions(filled, tokenizer);
  return tokenizer.encode(filled.bytes(), {.parse_special = true, .add_special = false, .plain_at = plain_at});
}

}  // namespace kvasir::text
