#include "spec/answer_store.h"

#include <algorithm>

namespace kvasir::spec {

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
