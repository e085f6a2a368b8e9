#include "grammar/tags/mark_writer.h"

#include <algorithm>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMinBytes = 3;  // of a control token that is looked for in a mark

}  // namespace

// The longest token that the text begins with.
const ControlToken* MarkWriter::token_at(std::string_view text) const {
  const ControlToken* longest = nullptr;
  for (const ControlToken& token : tokens_) {
    if (token.text.size() < kMinBytes || !text.starts_with(token.text)) continue;
    if (longest == nullptr || token.text.size() > longest->text.size()) longest = &token;
  }
  return longest;
}

Part MarkWriter::part(std::string_view mark) const {
  std::vector<Part> parts;
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) parts.push_back(GrammarBuilder::text(store_.word(plain)));
    plain.clear();
  };
  while (!mark.empty()) {
    const ControlToken* const token = token_at(mark);
    if (token == nullptr) {
      plain += mark.front();
      mark.remove_prefix(1);
      continue;
    }
    end_plain();
    parts.push_back(GrammarBuilder::token(token->id));
    mark.remove_prefix(token->text.size());
  }
  end_plain();
  return builder_.sequence(parts);
}

bool MarkWriter::ends_answer(std::string_view mark) const {
  return std::ranges::any_of(tokens_, [&](const ControlToken& token) { return token.ends_answer && token.text == mark; });
}

}  // namespace kvasir::grammar
