#include "engine/guided_choice.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kvasir {
namespace {

// The token that is this byte alone; kNoToken: there is none.
TokenId byte_token(const grammar::Vocabulary& vocabulary, char byte) {
  const grammar::TokenTrie& trie = vocabulary.trie();
  for (grammar::TokenTrie::NodeId node = 1; node < trie.skip(0); node = trie.skip(node)) {
    if (trie.byte(node) != static_cast<unsigned char>(byte)) continue;
    const auto entries = trie.entries_at(node);
    return entries.empty() ? kNoToken : entries.front().token;
  }
  return kNoToken;
}

}  // namespace

GuidedChoice::GuidedChoice(CompiledGuide guide, std::string field,
                           std::span<const TokenId> stop_tokens)
    : guide_(std::move(guide)),
      field_(std::move(field)),
      stop_tokens_(stop_tokens.begin(), stop_tokens.end()),
      matcher_(guide_),
      mask_(guide_->vocabulary().num_tokens()) {}

sampling::AllowedTokens GuidedChoice::allowed() {
  if (!is_filled_) fill();
  return allowed_;
}

// A stop token is left to the next step's mask, which knows when it may come.
std::size_t GuidedChoice::forced_behind(TokenId token, std::span<TokenId> run) {
  if (is_lost_ || is_stop(token) || !matcher_.accept(token)) return 0;
  const std::size_t num_forced = matcher_.is_exhausted() ? 0 : matcher_.forced(run);
  matcher_.rollback(1);
  if (guide_->is_exhausted()) return 0;
  const auto forced = run.first(num_forced);
  return static_cast<std::size_t>(std::ranges::find_if(forced, [this](TokenId t) { return is_stop(t); }) - forced.begin());
}

bool GuidedChoice::is_stop(TokenId token) const {
  return std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
}

// A token that comes without a mask is of a forced run.
void GuidedChoice::push(TokenId token, std::size_t num_bytes) {
  if (!is_filled_ || allowed_.only() == token) ++num_forced_;
  is_filled_ = false;
  if (!matcher_.accept(token)) {
    is_lost_ = true;
    return;
  }
  tokens_.push_back(token);
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) + num_bytes);
}

// Where the grammar has a stop token of its own, that goes first.
void GuidedChoice::end(TokenId token) {
  if (guide_->vocabulary().text(token).empty()) matcher_.accept(token);
}

bool GuidedChoice::accepts_prefix(std::size_t num_bytes) const {
  const auto num_whole = static_cast<std::size_t>(std::ranges::upper_bound(ends_, num_bytes) - ends_.begin());
  grammar::GrammarMatcher matcher = matcher_;
  matcher.rollback(tokens_.size() - num_whole);
  if (num_whole < tokens_.size()) {
    const grammar::Vocabulary& vocabulary = guide_->vocabulary();
    const std::size_t begin = num_whole == 0 ? 0 : ends_[num_whole - 1];
    for (const char byte : vocabulary.text(tokens_[num_whole]).substr(0, num_bytes - begin)) {
      if (!matcher.accept(byte_token(vocabulary, byte))) return false;
    }
  }
  return matcher.is_accepting();
}

std::optional<Error> GuidedChoice::error() const {
  if (!is_lost_ && !matcher_.is_exhausted()) return std::nullopt;
  return Error{ErrorKind::kUnmet, field_ + ": the answer makes it too ambiguous, or gives it too many states", field_};
}

void GuidedChoice::fill() {
  matcher_.fill(mask_);
  const bool may_end = matcher_.is_accepting();
  for (const TokenId token : stop_tokens_) {
    if (token >= mask_.num_tokens()) continue;
    if (may_end) {
      mask_.set(token);
    } else if (!guide_->vocabulary().text(token).empty()) {
      mask_.reset(token);  // one without text is there because the grammar names it
    }
  }
  allowed_ = sampling::AllowedTokens::of(mask_.words());
  is_filled_ = true;
}

}  // namespace kvasir
