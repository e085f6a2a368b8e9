#include "spec/answer_store.h"

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

std::shared_ptr<KeptAnswers> AnswerStore::open(std::string_view answer_namespace) {
  auto found = namespaces_.find(answer_namespace);
  if (found == namespaces_.end()) {
    if (namespaces_.size() == kMaxNamespaces) {
      namespaces_.erase(std::ranges::min_element(
          namespaces_, {}, [](const auto& named) { return named.second.last_opened; }));
    }
    found = namespaces_.emplace(answer_namespace, Entry{}).first;
  }
  found->second.last_opened = ++num_opened_;
  return found->second.answers;
}

}  // namespace kvasir::spec
