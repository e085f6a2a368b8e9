#include "grammar/testing/byte_matcher.h"

#include <string>
#include <vector>

#include "grammar/match/matcher.h"

namespace kvasir::grammar {

std::shared_ptr<const Vocabulary> byte_vocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    return std::make_shared<const Vocabulary>(views);
  }();
  return vocabulary;
}

bool accepts_bytes(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  for (const char byte : text) {
    if (!matcher.accept(static_cast<TokenId>(static_cast<unsigned char>(byte)))) return false;
  }
  return matcher.is_accepting() && !grammar->is_exhausted();
}

}  // namespace kvasir::grammar
