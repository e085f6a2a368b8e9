#include "spec/kept_answers.h"

#include <algorithm>

namespace kvasir::spec {

void KeptAnswers::add(std::span<const TokenId> answer) {
  const std::size_t compared = std::min(answer.size(), std::size_t{SuffixIndex::kMaxMatch});
  const auto known = static_cast<std::size_t>(answers_.longest_match_of(answer).length);
  if (answer.size() < 3 || known == compared) return;
  answers_.append(answer);
  answers_.append(std::span(&kNoToken, 1));
}

void KeptAnswers::continue_match(const SuffixIndex::Match& match, std::size_t num_tokens,
                                 std::vector<TokenId>& draft) const {
  const std::span<const TokenId> behind = answers_.tokens().subspan(match.next);
  const auto end = std::ranges::find(behind.first(std::min(num_tokens, behind.size())), kNoToken);
  draft.insert(draft.end(), behind.begin(), end);
}

}  // namespace kvasir::spec
