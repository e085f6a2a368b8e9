// Partitions of the characters by where they lead.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "grammar/regex/term.h"

namespace kvasir::grammar {

// Adds a range behind the others; one that goes on where the last one ends, with its target, makes it longer.
void append_range(TermRanges& ranges, const TermRange& range);

// The coarsest partition in which each part lies within one part of each input. combine gets the targets, one of each
// input (kNothing outside of its ranges), and gives the part's target. Surrogates are in no part.
TermRanges combine_ranges(std::span<const TermRanges* const> inputs,
                          const std::function<TermId(std::span<const TermId> targets)>& combine);

// The same characters, each with change(its target).
TermRanges map_targets(const TermRanges& ranges, const std::function<TermId(TermId)>& change);

}  // namespace kvasir::grammar
