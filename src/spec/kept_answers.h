// The answers of one namespace that have ended: what was said once may be said again.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "spec/suffix_index.h"

namespace kvasir::spec {

// The newest of about SuffixIndex::kMaxTokens tokens.
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

}  // namespace kvasir::spec
