// Whether languages have a text in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "grammar/regex/derivatives.h"
#include "grammar/regex/id_table.h"
#include "grammar/regex/term.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// One search. It takes the languages apart side by side and never makes a term of what they have in common. A union is
// searched part by part (Antimirov, "Partial Derivatives of Regular Expressions", 1996): its parts are few, and there are
// exponentially many unions of them.
//
// Thread safety: none.
class CommonText {
 public:
  // Both outlive this.
  CommonText(TermStore& store, Derivatives& derivatives) : store_(store), derivatives_(derivatives) {}

  // Where the store is exhausted meanwhile, the result means nothing.
  bool is_there(std::span<const TermId> languages);

 private:
  static constexpr std::size_t kMaxChoices = 1024;  // of parts of what is left
  using Place = std::uint32_t;  // from 1 on: what is left of each language, in tails_

  void reach_parts(std::span<const TermId> tails);
  void reach(std::span<const TermId> tails);
  void split(TermId term, std::vector<TermId>& parts);
  void bound_choices(std::span<const TermId> tails);
  void expand(Place place);
  std::span<const TermId> tails(Place place) const {
    return std::span(tails_).subspan((place - 1) * num_languages_, num_languages_);
  }

  TermStore& store_;
  Derivatives& derivatives_;
  std::size_t num_languages_ = 0;
  std::vector<TermId> tails_;
  Place num_places_ = 0;
  bool is_found_ = false;
  IdTable known_;
  std::vector<std::vector<TermId>> parts_;  // of each tail at hand
  std::vector<std::size_t> chosen_;         // one of each
  std::vector<TermId> choice_;
  struct Open {
    std::uint32_t shortest = 0;   // characters to an end at least
    std::uint64_t total = 0;      // of all languages, each by itself
    Place place = 0;

    // The last one of equals goes first, for it is on the way.
    auto operator<=>(const Open& other) const {
      return std::tie(other.shortest, other.total, place) <=> std::tie(shortest, total, other.place);
    }
  };
  std::priority_queue<Open> open_;
};

}  // namespace kvasir::grammar
