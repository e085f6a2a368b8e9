// How many texts a language has.
#pragma once

#include <cstdint>

#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

inline constexpr std::uint32_t kManyTexts = 1 << 16;

// kManyTexts for as many or more.
std::uint32_t text_number(SchemaEvaluator& evaluator, TermId term);

}  // namespace kvasir::grammar
