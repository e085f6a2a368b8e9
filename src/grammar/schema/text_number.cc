#include "grammar/schema/text_number.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/code_point.h"

namespace kvasir::grammar {
namespace {

constexpr int kMaxCharacters = 8192;  // a language with longer texts has many

}  // namespace

// Character by character: every way that is open leads to one text at least.
std::uint32_t text_number(SchemaEvaluator& evaluator, TermId term) {
  if (!evaluator.derivatives().is_alive(term)) return 0;
  if (evaluator.store().kind(term) == TermKind::kWords) return std::min(evaluator.store().num_words(term), kManyTexts);
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

std::vector<std::string> texts_of(SchemaEvaluator& evaluator, TermId term) {
  std::vector<std::string> texts;
  std::vector<std::pair<TermId, std::string>> open = {{term, {}}};
  while (!open.empty()) {
    const auto [from, begin] = std::move(open.back());
    open.pop_back();
    if (evaluator.store().is_nullable(from)) texts.push_back(begin);
    const TermRanges ranges = evaluator.derivatives().of(from);
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
      for (char32_t c = range->last + 1; c-- > range->first;) {
        open.emplace_back(range->target, begin);
        append_utf8(open.back().second, c);
      }
    }
  }
  return texts;
}

}  // namespace kvasir::grammar
