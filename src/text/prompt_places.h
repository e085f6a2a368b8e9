// A prompt with places for texts that somebody else wrote.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "text/tokenizer.h"

namespace kvasir::text {

struct PromptPlace {
  std::string_view name;  // as it stands in the prompt: "{query}"
  std::string_view text;
};

// The prompt with a text in each of its places, as one text. Control tokens come from the prompt alone, never from a
// text; a place that is named in a text is none.
std::vector<TokenId> encode_with_places(std::string_view prompt, std::span<const PromptPlace> places,
                                        const Tokenizer& tokenizer);

}  // namespace kvasir::text
