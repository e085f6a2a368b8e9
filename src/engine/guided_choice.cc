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

GuidedChoice::GuidedChoice(CompiledGuide guide, std::string field, std::span<const TokenId> stop_tokens, Renew renew)
    : guide_(std::move(guide)),
      renewed_(std::move(renew)),
      field_(std::move(field)),
      stop_tokens_(stop_tokens.begin(), stop_tokens.end()),
      matcher_(guide_) {}

std::span<const sampling::AllowedTokens> GuidedChoice::allowed_at_each(std::span<const TokenId> guesses) {
  const bool is_longer = guesses.size() >= guesses_.size() && std::ranges::equal(guesses.first(guesses_.size()), guesses_);
  if (num_came_ > 0 || !is_longer) forget_views();
  if (!views_.empty() && guesses.size() == guesses_.size()) return views_;
  guesses_.assign(guesses.begin(), guesses.end());
  if (views_.empty()) add_view();
  std::size_t num_accepted = 0;
  for (const TokenId guess : guesses) {
    if (!accept(guess, guesses.first(num_accepted))) break;  // no state is left for it: the row's result will be another token
    if (++num_accepted == views_.size()) add_view();
  }
  matcher_.rollback(num_accepted);
  while (views_.size() <= guesses.size()) views_.push_back(views_.back());
  return views_;
}

// A guess that ends the answer is none, for nothing may be chosen behind it.
std::size_t GuidedChoice::num_possible(std::span<const TokenId> guesses) {
  if (is_lost_ || matcher_.is_exhausted()) return 0;
  std::size_t num_accepted = 0, num_going_on = 0;
  for (const TokenId guess : guesses) {
    if (is_stop(guess) || !matcher_.accept(guess)) break;
    ++num_accepted;
    if (matcher_.must_end()) break;
    num_going_on = num_accepted;
  }
  const bool is_exhausted = matcher_.is_exhausted();
  matcher_.rollback(num_accepted);
  return is_exhausted ? 0 : num_going_on;
}

bool GuidedChoice::has_states_for(std::span<const TokenId> guesses) {
  if (is_lost_ || matcher_.is_exhausted()) return false;
  std::size_t num_accepted = 0;
  while (num_accepted < guesses.size() && matcher_.accept(guesses[num_accepted])) ++num_accepted;
  const bool has_states = num_accepted == guesses.size() && !matcher_.is_exhausted();
  matcher_.rollback(num_accepted);
  return has_states;
}

std::optional<sampling::AllowedTokens> GuidedChoice::allowed_behind(std::span<const TokenId> guesses) {
  if (!has_states_for(guesses)) return std::nullopt;
  return allowed_at_each(guesses).back();
}

// A stop token is left to the next step's mask, which knows when it may come.
std::size_t GuidedChoice::forced_behind(std::span<const sched::SampledToken> sampled, std::span<TokenId> run) {
  if (is_lost_ || is_stop(sampled.back().token)) return 0;
  std::size_t num_accepted = 0;
  while (num_accepted < sampled.size() && matcher_.accept(sampled[num_accepted].token)) ++num_accepted;
  const bool goes_on = num_accepted == sampled.size() && !matcher_.is_exhausted();
  const std::size_t num_forced = goes_on ? matcher_.forced(run) : 0;
  matcher_.rollback(num_accepted);
  if (guide_->is_exhausted()) return 0;
  const auto forced = run.first(num_forced);
  return static_cast<std::size_t>(std::ranges::find_if(forced, [this](TokenId t) { return is_stop(t); }) - forced.begin());
}

bool GuidedChoice::is_stop(TokenId token) const {
  return std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
}

// A token that comes without a mask is of a forced run.
void GuidedChoice::push(TokenId token, std::size_t num_bytes) {
  if (num_came_ >= views_.size() || views_[num_came_].only() == token) ++num_forced_;
  const bool is_guessed = num_came_ < guesses_.size() && guesses_[num_came_] == token;
  if (is_guessed) {
    ++num_came_;
  } else {
    forget_views();
  }
  if (!accept(token)) {
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
  std::vector<TokenId> tokens(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(num_whole));
  if (num_whole < tokens_.size()) {
    const grammar::Vocabulary& vocabulary = guide_->vocabulary();
    const std::size_t begin = num_whole == 0 ? 0 : ends_[num_whole - 1];
    for (const char byte : vocabulary.text(tokens_[num_whole]).substr(0, num_bytes - begin)) {
      tokens.push_back(byte_token(vocabulary, byte));
    }
  }
  const auto is_text = [&](const CompiledGuide& guide) {
    grammar::GrammarMatcher matcher(guide);
    return std::ranges::all_of(tokens, [&](TokenId token) { return matcher.accept(token); }) && matcher.is_accepting();
  };
  const bool is_one = is_text(guide_);
  return guide_->is_exhausted() ? is_text(renewed_(guide_)) : is_one;
}

// Where the guide is exhausted, anew. `guesses_before`: accepted behind tokens_. False: the token may not come, or the
// answer is lost.
bool GuidedChoice::accept(TokenId token, std::span<const TokenId> guesses_before) {
  const bool is_allowed = matcher_.accept(token);
  if (!guide_->is_exhausted()) return is_allowed;
  if (!renew(guesses_before)) return false;
  const bool is_allowed_anew = matcher_.accept(token);
  is_lost_ = guide_->is_exhausted();
  return is_allowed_anew && !is_lost_;
}

// False: a new guide is exhausted by the tokens so far.
bool GuidedChoice::renew(std::span<const TokenId> guesses_before) {
  guide_ = renewed_(guide_);
  matcher_ = grammar::GrammarMatcher(guide_);
  const auto accepts = [this](TokenId token) { return matcher_.accept(token); };
  is_lost_ = !std::ranges::all_of(tokens_, accepts) || !std::ranges::all_of(guesses_before, accepts) ||
             guide_->is_exhausted();
  return !is_lost_;
}

std::optional<Error> GuidedChoice::error() const {
  if (!is_lost_ && !matcher_.is_ambiguous()) return std::nullopt;
  return Error{ErrorKind::kUnmet, field_ + ": the answer makes it too ambiguous, or gives it too many states", field_};
}

void GuidedChoice::forget_views() {
  views_.clear();
  guesses_.clear();
  num_came_ = 0;
}

void GuidedChoice::add_view() {
  if (masks_.size() == views_.size()) masks_.emplace_back(guide_->vocabulary().num_tokens());
  grammar::TokenMask& mask = masks_[views_.size()];
  matcher_.fill(mask);
  if (guide_->is_exhausted()) {
    if (renew(std::span(guesses_).first(views_.size()))) matcher_.fill(mask);
    is_lost_ = is_lost_ || guide_->is_exhausted();
    if (is_lost_) mask.set_all();  // whatever comes, the answer ends with error()
  }
  const bool may_end = matcher_.is_accepting();
  for (const TokenId token : stop_tokens_) {
    if (token >= mask.num_tokens()) continue;
    if (may_end) {
      mask.set(token);
    } else if (!guide_->vocabulary().text(token).empty()) {
      mask.reset(token);  // one without text is there because the grammar names it
    }
  }
  views_.push_back(sampling::AllowedTokens::of(mask.words()));
}

}  // namespace kvasir
