// What holds of every guide, whatever made it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"

namespace kvasir::grammar {

// All bytes, and some tokens of several.
inline std::shared_ptr<const Vocabulary> fuzz_vocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* text : {"ab", "aaa", "{\"", "\":", "\", \"", "\"}", "00", "12", "true", "null", ", ", "\n  ", "</", "<f=", "\\u00"}) {
      tokens.emplace_back(text);
    }
    return std::make_shared<const Vocabulary>(std::vector<std::string_view>(tokens.begin(), tokens.end()));
  }();
  return vocabulary;
}

inline void check_message(const Error& error) {
  CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos);
}

// Walks along masks: there is always a way on or the end, and exactly the tokens of the mask are accepted.
inline void walk_guide(std::unique_ptr<TermStore> store, Grammar grammar, std::uint32_t seed) {
  auto compiled = CompiledGrammar::create(std::move(store), std::move(grammar), fuzz_vocabulary());
  if (!compiled) return check_message(compiled.error());
  GrammarMatcher matcher(*compiled);
  TokenMask mask(fuzz_vocabulary()->num_tokens());
  for (int step = 0; step < 24 && !matcher.must_end(); ++step) {
    matcher.fill(mask);
    std::vector<TokenId> allowed;
    for (TokenId token = 0; token < mask.num_tokens(); ++token) {
      if (mask.test(token)) allowed.push_back(token);
    }
    if ((*compiled)->is_exhausted()) return;
    CHECK(!allowed.empty() || matcher.is_accepting());
    if (allowed.empty()) return;
    seed = seed * 1664525 + 1013904223;
    const auto other = static_cast<TokenId>(seed >> 16) % mask.num_tokens();
    GrammarMatcher fork = matcher;
    const bool is_accepted = fork.accept(other);
    if ((*compiled)->is_exhausted()) return;
    CHECK(is_accepted == mask.test(other));
    const bool is_taken = matcher.accept(allowed[(seed >> 8) % allowed.size()]);
    if ((*compiled)->is_exhausted()) return;
    CHECK(is_taken);
  }
}

}  // namespace kvasir::grammar
