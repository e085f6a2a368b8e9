// Answers that have ended, by whom they may be looked up for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "spec/kept_answers.h"

namespace kvasir::spec {

// By namespace, so that no tenant is answered faster for what another one was told. About 20 bytes a token: 10 MB at
// most. Of too many namespaces the one that was opened least recently leaves.
//
// Thread safety: none.
class AnswerStore {
 public:
  static constexpr std::size_t kMaxNamespaces = 16;

  // Outlives its leaving.
  std::shared_ptr<KeptAnswers> open(std::string_view answer_namespace);

 private:
  struct Entry {
    std::shared_ptr<KeptAnswers> answers = std::make_shared<KeptAnswers>();
    std::int64_t last_opened = 0;
  };

  std::map<std::string, Entry, std::less<>> namespaces_;
  std::int64_t num_opened_ = 0;
};

}  // namespace kvasir::spec
