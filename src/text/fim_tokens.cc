#include "text/fim_tokens.h"

#include <span>

#include "text/fim_texts.h"
#include "text/vocab.h"

namespace kvasir::text {

FimTokens find_fim_tokens(const VocabData& named, const std::function<TokenId(std::string_view)>& find) {
  const auto named_or_first_of = [&](TokenId id, std::span<const std::string_view> texts) {
    for (const std::string_view text : texts) {
      if (id == kNoToken) id = find(text);
    }
    return id;
  };
  return {.prefix = named_or_first_of(named.fim_prefix, kFimPrefixTexts),
          .suffix = named_or_first_of(named.fim_suffix, kFimSuffixTexts),
          .middle = named_or_first_of(named.fim_middle, kFimMiddleTexts),
          .repository = named_or_first_of(named.fim_repository, kFimRepositoryTexts),
          .separator = named_or_first_of(named.fim_separator, kFimSeparatorTexts)};
}

}  // namespace kvasir::text
