#include "grammar/regex/common_text.h"

#include <algorithm>

#include "grammar/regex/fingerprint.h"
#include "grammar/regex/term_ranges.h"

namespace kvasir::grammar {

// From there to where the end seems nearest.
bool CommonText::is_there(std::span<const TermId> languages) {
  num_languages_ = languages.size();
  parts_.resize(num_languages_);
  reach_parts(languages);
  while (!is_found_ && !open_.empty() && !store_.is_exhausted()) {
    const Place place = open_.top().place;
    open_.pop();
    const std::size_t work_before = store_.work();
    expand(place);
    store_.count_search(store_.work() - work_before);
  }
  return is_found_;
}

// Languages whose union is the term's.
void CommonText::split(TermId term, std::vector<TermId>& parts) {
  const TermKind kind = store_.kind(term);
  const bool is_concat = kind == TermKind::kConcat && store_.kind(store_.children(term)[0]) == TermKind::kUnion;
  if (kind != TermKind::kUnion && !is_concat) {
    parts.push_back(term);
    return;
  }
  const TermId joined = is_concat ? store_.children(term)[0] : term;
  const TermId tail = is_concat ? store_.children(term)[1] : kEmptyText;
  const std::vector<TermId> members(store_.children(joined).begin(), store_.children(joined).end());
  for (const TermId member : members) split(store_.concat(member, tail), parts);
}

// Where there are too many ways to choose, the unions of most parts stay whole.
void CommonText::bound_choices(std::span<const TermId> tails) {
  const auto num_choices = [this] {
    std::size_t product = 1;
    for (const std::vector<TermId>& parts : parts_) product = std::min(kMaxChoices + 1, product * parts.size());
    return product;
  };
  while (num_choices() > kMaxChoices) {
    const auto most = std::ranges::max_element(parts_, {}, [](const std::vector<TermId>& parts) { return parts.size(); });
    most->assign(1, tails[static_cast<std::size_t>(most - parts_.begin())]);
  }
}

// Each way to choose a part of every tail.
void CommonText::reach_parts(std::span<const TermId> tails) {
  if (store_.life_of_all(tails) == TermStore::Life::kDead) return;
  for (std::size_t i = 0; i < num_languages_; ++i) {
    parts_[i].clear();
    split(tails[i], parts_[i]);
  }
  bound_choices(tails);
  chosen_.assign(num_languages_, 0);
  choice_.resize(num_languages_);
  for (std::size_t at = 0; at < num_languages_ && !is_found_;) {
    for (std::size_t i = 0; i < num_languages_; ++i) choice_[i] = parts_[i][chosen_[i]];
    reach(choice_);
    for (at = 0; at < num_languages_ && ++chosen_[at] == parts_[at].size(); ++at) chosen_[at] = 0;
  }
}

void CommonText::reach(std::span<const TermId> tails) {
  store_.count_work(num_languages_);
  const TermStore::Life life = store_.life_of_all(tails);
  if (life == TermStore::Life::kDead) return;
  if (life == TermStore::Life::kAlive) is_found_ = true;
  Fingerprint hash(0);
  for (const TermId tail : tails) hash.add(std::uint64_t{tail});
  const auto is_same = [&](Place known) { return std::ranges::equal(this->tails(known), tails); };
  if (known_.find(hash.value().first, is_same) != IdTable::kNone) return;
  Open open = {.place = ++num_places_};
  for (const TermId tail : tails) {
    open.shortest = std::max(open.shortest, store_.shortest(tail));
    open.total += store_.shortest(tail);
  }
  tails_.insert(tails_.end(), tails.begin(), tails.end());
  known_.insert(hash.value().first, open.place);
  open_.push(open);
}

void CommonText::expand(Place place) {
  std::vector<const TermRanges*> inputs;
  for (std::size_t i = 0; i < num_languages_; ++i) {
    inputs.push_back(&derivatives_.raw(tails(place)[i]));
    store_.count_work(inputs.back()->size());
  }
  combine_ranges(inputs, [&](std::span<const TermId> targets) {
    if (!is_found_) reach_parts(targets);
    return kNothing;
  });
}

}  // namespace kvasir::grammar
