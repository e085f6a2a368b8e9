// Keeps a user's text from becoming control tokens on its way through the chat template.
#pragma once

#include <cstddef>
#include <vector>

#include "jinja/traced_text.h"
#include "text/tokenizer.h"

namespace kvasir::text {

// The prompt is tokenised as one text, so that words may cross from template into content, with control
// tokens parsed, since the template writes them. The result is for EncodeOptions::plain_at: the places where
// such a token would begin in text that is foreign to the template. The template itself sees a user's text as
// it came, whatever it does with it.
std::vector<std::size_t> plain_positions(const jinja::TracedText& prompt, const Tokenizer& tokenizer);

}  // namespace kvasir::text
