// Answers that have ended: what was said once may be said again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "spec/suffix_index.h"

namespace kvasir::spec {

// The answers of one namespace, the newest of about SuffixIndex::kMaxTokens tokens.
//
// Thread safety: none.
class KeptAnswers {
 public:
  // One that is kept already is not kept again.
  void add(std::span<const TokenId> answer);
  // Where the end of the text occurs in an answer; the longest, of equal ones the latest.
  SuffixIndex::Match longest_match(std::span<const TokenId> text) const { return answers_.longest_match_of(text); }
  // Appends at most `num_tokens` guesses to `draft`: what came behind, up to the end of that answer.
  void continue_match(const SuffixIndex::Match& match, std::size_t num_tokens, std::vector<TokenId>& draft) const;

 private:
  SuffixIndex answers_;  // kNoToken stands behind each
};

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
