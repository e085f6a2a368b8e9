#include "text/fim_tokens.h"

#include <array>
#include <span>
#include <string_view>

#include "text/fim_texts.h"

namespace kvasir::text {

FimTokens fim_tokens_of(const Vocab& vocab) {
  const auto first_of = [&](std::span<const std::string_view> texts) {
    for (const std::string_view text : texts) {
      if (const TokenId id = vocab.find(text); id != kNoToken) return id;
    }
    return kNoToken;
  };
  return {.prefix = first_of(kFimPrefixTexts),
          .suffix = first_of(kFimSuffixTexts),
          .middle = first_of(kFimMiddleTexts),
          .repository = first_of(kFimRepositoryTexts),
          .separator = first_of(kFimSeparatorTexts)};
}

}  // namespace kvasir::text
