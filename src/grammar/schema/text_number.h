// How many texts a language has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

inline constexpr std::uint32_t kManyTexts = 1 << 16;

// kManyTexts for as many or more.
std::uint32_t text_number(SchemaEvaluator& evaluator, TermId term);

// All texts, in the order of their characters. Requires: there are few.
std::vector<std::string> texts_of(SchemaEvaluator& evaluator, TermId term);

}  // namespace kvasir::grammar
