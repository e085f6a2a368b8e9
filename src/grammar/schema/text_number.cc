#include "grammar/schema/text_number.h"

#include <map>

namespace kvasir::grammar {
namespace {

constexpr int kMaxCharacters = 8192;  // a language with longer texts has many

}  // namespace

// Character by character: every way that is open leads to one text at least.
std::uint32_t text_number(SchemaEvaluator& evaluator, TermId term) {
  if (!evaluator.derivatives().is_alive(term)) return 0;
  std::map<TermId, std::uint64_t> open = {{term, 1}};
  std::uint64_t num_ended = 0;
  for (int i = 0; i < kMaxCharacters; ++i) {
    std::map<TermId, std::uint64_t> next;
    std::uint64_t num_open = 0;
    for (const auto& [from, num_ways] : open) {
      if (evaluator.store().is_nullable(from)) num_ended += num_ways;
      const TermRanges ranges = evaluator.derivatives().of(from);
      for (const TermRange& range : ranges) {
        const std::uint64_t num_behind = num_ways * (range.last - range.first + 1);
        next[range.target] += num_behind;
        num_open += num_behind;
        if (num_ended + num_open >= kManyTexts) return kManyTexts;
      }
    }
    if (next.empty()) return static_cast<std::uint32_t>(num_ended);
    open = std::move(next);
  }
  return kManyTexts;
}

}  // namespace kvasir::grammar
