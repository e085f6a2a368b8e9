// The keywords of a schema that its compiled guide passes over.
#pragma once

#include <string>
#include <vector>

namespace kvasir::grammar {

class CompiledGrammar;

// JSON pointers of keywords of its schema whose values JSON Schema does not define, so that they rule nothing out; the
// first few. The reference lives as long as the guide. Thread-safe.
const std::vector<std::string>& ignored_keywords(const CompiledGrammar& guide);

}  // namespace kvasir::grammar
