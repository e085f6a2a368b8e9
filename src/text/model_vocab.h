// The tokens that a model itself may give, without those that were added to it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "text/vocab.h"

namespace kvasir::text {

// Thread safety: immutable. Invariant: the vocabulary outlives this and does not move.
class ModelVocab {
 public:
  // `is_added` has an entry for each token, or none when no token is added.
  ModelVocab(const Vocab& vocab, std::vector<bool> is_added)
      : vocab_(&vocab), is_added_(std::move(is_added)) {}

  const Vocab& vocab() const { return *vocab_; }
  bool contains(TokenId id) const {
    return vocab_->contains(id) && (is_added_.empty() || !is_added_[static_cast<std::size_t>(id)]);
  }
  // kNoToken when the model has no such token.
  TokenId find(std::string_view text) const {
    const TokenId id = vocab_->find(text);
    return id != kNoToken && contains(id) ? id : kNoToken;
  }

 private:
  const Vocab* vocab_;
  std::vector<bool> is_added_;
};

}  // namespace kvasir::text
